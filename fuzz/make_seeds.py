#!/usr/bin/env python3
"""Writes small good inputs for every fuzz target: make_seeds.py FOLDER.

A fuzzer that starts from files that are read to the end finds its way into
the readers at once. Each target has a folder of its own.
"""

import json
import pathlib
import struct
import sys


def safetensors(tensors):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, (dtype, shape, numbers) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [len(data), len(data) + len(numbers)]}
        data += numbers
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def npy(version, descr, fortran, shape, data):
    header = str({"descr": descr, "fortran_order": fortran, "shape": shape})
    length = struct.pack("<H" if version == 1 else "<I", len(header) + 1)
    return (b"\x93NUMPY" + bytes([version, 0]) + length +
            header.encode() + b"\n" + data)


def spelled_bytes():
    """GPT-2's spelling of the 256 bytes."""
    pieces, following = [], 256
    for byte in range(256):
        visible = 33 <= byte <= 126 or 161 <= byte <= 172 or byte >= 174
        pieces.append(chr(byte if visible else following))
        following += not visible
    return pieces


def byte_pair():
    few = {"a": 0, "b": 1, "\u0120": 2, "ab": 3, "\u0120ab": 4}
    merges = ["a b", "\u0120 ab"]
    all_pieces = spelled_bytes() + ["ab"]
    every = {piece: i for i, piece in enumerate(all_pieces)}
    return few, merges, every


def tokenizer_json():
    few, merges, every = byte_pair()
    special = {"id": 5, "content": "<|end|>", "special": True}
    for vocabulary, merge, added in (
            (few, merges, [special]), (every, [["a", "b"]], [])):
        yield {"version": "1.0", "added_tokens": added, "normalizer": None,
               "pre_tokenizer": {"type": "ByteLevel",
                                 "add_prefix_space": False},
               "model": {"type": "BPE", "dropout": None, "vocab": vocabulary,
                         "merges": merge}}
    pieces = ["[MASK]", "a", "##b", "Ab", "[UNK]", "ab", "'", "ll", ".", "e", "\u6771"]
    yield {"added_tokens": [
               {"id": 0, "content": "[MASK]", "special": True, "lstrip": True,
                "rstrip": False, "single_word": False, "normalized": False},
               {"id": 3, "content": "Ab", "special": False, "lstrip": False,
                "rstrip": True, "single_word": True, "normalized": True}],
           "normalizer": {"type": "BertNormalizer", "clean_text": True,
                          "handle_chinese_chars": True, "strip_accents": None,
                          "lowercase": True},
           "pre_tokenizer": {"type": "BertPreTokenizer"},
           "model": {"type": "WordPiece", "unk_token": "[UNK]",
                     "continuing_subword_prefix": "##",
                     "max_input_chars_per_word": 100,
                     "vocab": {p: i for i, p in enumerate(pieces)}}}
    pieces = ["<unk>", "\u2581", "a", "b", "\u2581a", "ab", "<0x0A>"]
    yield {"added_tokens": [], "normalizer": {"type": "Sequence", "normalizers": [
               {"type": "NFKC"}, {"type": "Lowercase"}, {"type": "Prepend", "prepend": "\u2581"},
               {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
               {"type": "Strip", "strip_left": True, "strip_right": False}]},
           "pre_tokenizer": None,
           "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True,
                     "ignore_merges": True, "vocab": {p: i for i, p in enumerate(pieces)},
                     "merges": ["a b", ["\u2581", "a"]]}}
    yield {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "CAAAAAAAAAAAAAAAYQA="},
           "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
               {"type": "Split", "pattern": {"Regex": "\\p{N}{1,3}|[^\\s[a.]]+(?!\\S)|(?i:'s)"},
                "behavior": "MergedWithNext", "invert": True},
               {"type": "Digits", "individual_digits": True},
               {"type": "Punctuation", "behavior": "Contiguous"},
               {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": True}]},
           "model": {"type": "Unigram", "unk_id": 0, "byte_fallback": True,
                     "vocab": [[p, -float(i)] for i, p in enumerate(pieces)]}}
    yield {"do_lower_case": False, "strip_accents": None,
           "tokenize_chinese_chars": True, "unk_token": "[UNK]"}
    # those of the tests, with all their parts
    cases = pathlib.Path(__file__).parents[1] / "tests" / "text" / "golden" / "tokenizers.json"
    for case in json.loads(cases.read_text())["cases"]:
        yield case["tokenizer"]
    # the parts that none of them has
    pieces = ["<unk>", "a", "b", "ab", "\u00e9"]
    for normalizer, words in (
            ({"type": "NFD"}, {"type": "WhitespaceSplit"}),
            ({"type": "Sequence", "normalizers": [{"type": "NFKD"}, {"type": "StripAccents"}]},
             {"type": "Split", "pattern": {"String": "a"}, "behavior": "MergedWithPrevious", "invert": False}),
            ({"type": "ByteLevel"}, {"type": "Metaspace", "replacement": "_", "add_prefix_space": True}),
            ({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "\u2581"},
             {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": False})):
        yield {"added_tokens": [{"id": 5, "content": "ab a", "special": False, "normalized": True}],
               "normalizer": normalizer, "pre_tokenizer": words,
               "model": {"type": "BPE", "unk_token": "<unk>", "end_of_word_suffix": "", "merges": ["a b"],
                         "vocab": {p: i for i, p in enumerate(pieces)}}}


def scored(pieces):
    return b"".join(struct.pack("<fi", -i, len(p)) + p
                    for i, p in enumerate(pieces))


def tokenizer_bin():
    text = [" ".encode(), b"a", b"b", "\u00c9".encode(), b"ab", b" ab"]
    yield b"+" + scored(text)
    pieces = [b"<unk>", b"<s>", b"</s>"]
    pieces += [b"<0x%02X>" % byte for byte in range(256)]
    yield b"=" + struct.pack("<i", 6) + scored(pieces + text)


def seeds():
    few, merges, every = byte_pair()
    two = struct.pack("<2d", 1.5, -2)
    yield "safetensors", safetensors({"w": ("F64", [1, 2], two)})
    yield "safetensors", safetensors({
        "a": ("F32", [2], struct.pack("<2f", 1, 2)),
        "b": ("F16", [2, 2], struct.pack("<4e", 1, 2, 3, 4)),
        "c": ("BF16", [1], b"\x80\x3f"), "d": ("I64", [0, 3], b"")})
    one = safetensors({"a": ("F32", [1], struct.pack("<f", 1))})
    for places in ({"a": "a.safetensors"}, {"a": "a.safetensors", "b": "b.safetensors"}, {"c": "c.safetensors"},
                   {"a": "../a.safetensors"}):
        yield "shards", json.dumps({"metadata": {"total_size": 4}, "weight_map": places}).encode() + b"\0" + one
    for version in (1, 2, 3):
        yield "npy", npy(version, "<f8", False, (1, 2), two)
    yield "npy", npy(1, "<f4", True, (2, 1), struct.pack("<2f", 1, 2))
    yield "npy", npy(1, "<f2", False, (1, 1), b"\x00\x3c")
    yield "journal", b'{"n": 1}\n{"x": [1.5, null, "\\u00e9"]}\n'
    yield "journal", b'{"n": 1}\n{"torn": '
    yield "journal", b'{"no": "newline"}'
    record = {
        "schema": 1, "command": "measure", "version": "0", "model": "a/",
        "model_sha256": None, "layer": 0, "head": "all", "map": "attn",
        "kind": "dot", "mask": "none", "norm": "2", "n": 2, "d": 4,
        "sample": 0, "radius_max": 1.0, "radius_rms": 1.0, "lower": 1.5,
        "lower_by": "golub-kahan", "upper": 2.5, "upper_log10": 0.39794,
        "upper_by": "own_split", "upper_whp": 2.0, "delta": 1e-10,
        "scope": "input", "residual": 1e-9, "steps": 5, "status": "converged",
        "dtype": "f32", "seed": 0, "seconds": 0.1,
        "parameters": {"tokens": True, "x": 3, "series": "s"},
        "details": {"tokens": ["a", "b"], "input_share": [0.25, 0.75],
                    "output_share": [0.5, 0.5]}}
    growth = {"schema": 1, "command": "growth", "model": "a/", "points": 4,
              "exponent": 0.5, "exponent_low": 0.4, "exponent_high": 0.6,
              "confidence": 0.95, "constant": 1.0, "r_squared": 0.9}
    yield "records", "".join(
        json.dumps(r) + "\n" for r in (record, growth)).encode()
    yield "records", json.dumps({**record, "upper": None, "head": 3}).encode()
    yield "config", json.dumps({
        "model_type": "gpt2", "n_layer": 2, "n_head": 2, "n_embd": 8,
        "n_positions": 16, "vocab_size": 20}).encode()
    yield "config", json.dumps({
        "model_type": "bert", "hidden_size": 8, "num_hidden_layers": 1,
        "num_attention_heads": 2, "intermediate_size": 12, "hidden_act": "gelu",
        "layer_norm_eps": 1e-12, "type_vocab_size": 2}).encode()
    yield "config", json.dumps({
        "model_type": "llama", "hidden_size": 8, "num_attention_heads": 4,
        "num_key_value_heads": 2, "rope_theta": 1e4, "rope_scaling": None,
        "hidden_act": "silu"}).encode()
    golden = pathlib.Path(__file__).parents[1] / "tests" / "model" / "golden"
    for file in sorted(golden.glob("*.json")):
        yield "config", json.dumps(json.loads(file.read_text())["config"]).encode()
    for more in ({"mixer": "dot", "norm": "post"},
                 {"mixer": "contractive-l2", "norm": "none", "contraction": 0.9},
                 {"mixer": "lstm"}):
        yield "trained", json.dumps({
            "model_type": "lipscope", "num_layers": 2, "width": 8,
            "num_heads": 2, "mlp_width": 12, "activation": "gelu",
            "context": 16, "characters": [10, 32, 97, 233, 8364],
            "training": {"lr": 0.001}, **more}).encode()
    yield "trained", json.dumps({
        "step": 40, "checkpoint": "checkpoint-40.safetensors",
        "sha256": "0a" * 32, "best_step": 20,
        "best_valid_nll": 2.5}).encode()
    for file in tokenizer_json():
        yield "tokenizer_json", json.dumps(file, ensure_ascii=False).encode()
    for regex in ("'s|'t| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
                  "(?i:'s)|[^\\r\\n[a.]]?\\u00e9|\\x{6771}{1,3}|^\\P{Lu}$|(?<=b)\\d*"):
        yield "regex", regex.encode()
    for vocabulary in (few, every):
        yield "vocab_merges", b"\0".join((
            json.dumps(vocabulary, ensure_ascii=False).encode(),
            "\n".join(["#version: 0.2"] + merges[:1] + [""]).encode()))
    yield "vocab_merges", b'{"a": 0, "b</w>": 1, "ab</w>": 2}\0a b</w>\n'
    yield "vocab_merges", b"\0[UNK]\na\r\n##b\nab\n"
    yield "vocab_merges", b"\x001 22\t333\n4\n"
    for file in tokenizer_bin():
        yield "tokenizer_bin", file
    for text in ("ab  aab it's we'll\n\n x2", "\u00c9e\u0301 \u6771\u4eac.a",
                 "\U0001F600\u200d\u00a0\u200b\ufeff\x01\x85",
                 "<s>a [UNK] Ab</s> <unk>\u6771ab",
                 "\u0130\u0131 \ud55c \uf900 \u302e\U0001D165", "a" * 200):
        yield "text", text.encode()


def main():
    root = pathlib.Path(sys.argv[1])
    for number, (target, content) in enumerate(seeds()):
        folder = root / target
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"seed-{number}").write_bytes(content)


if __name__ == "__main__":
    main()
