"""Writes added_tokens.json: what Hugging Face's `tokenizers` makes of texts with
added tokens in them, for small vocabularies. Ids, and for WordPiece the bytes
that each token stands at.

    pip install tokenizers==0.23.3
    python3 added_tokens.py > added_tokens.json
"""

import json

from tokenizers import Tokenizer


def added(token_id, content, **flags):
    token = {"id": token_id, "content": content, "single_word": False, "lstrip": False,
             "rstrip": False, "normalized": False, "special": True}
    token.update(flags)
    return token


def spelling():
    """The character that byte-level vocabularies write for each byte."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [b for b in range(256) if b not in visible]
    return {**{b: chr(b) for b in visible}, **{b: chr(256 + i) for i, b in enumerate(hidden)}}


def word_piece(lowercase):
    pieces = ["[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "##a", "##b", "ab", "new", "york", "##s", ".", "[", "]",
              "<", ">", "m", "##m", "word", "東", "e", "##e", "cls", "mask", "ᄒ", "##ᅡ", "##ᆫ", "é", "E", "New"]
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    first = len(pieces)
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [
            added(1, "[CLS]"), added(2, "[SEP]"), added(3, "[MASK]", lstrip=True),
            added(first, "<m>", lstrip=True, rstrip=True),
            added(vocabulary["word"], "word", single_word=True),
            added(first + 1, "New York", special=False, normalized=True),
            added(first + 2, "New York City", special=False, normalized=True, rstrip=True),
            added(first + 3, "[M"), added(first + 4, "É", special=False, normalized=True, single_word=True)],
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                       "strip_accents": None, "lowercase": lowercase},
        "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": None, "decoder": None,
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": vocabulary}}


def byte_pair(prefix):
    spelled = spelling()
    vocabulary = {spelled[b]: b for b in range(256)}
    merges = [("a", "b"), (spelled[32], "a"), (spelled[32], "ab"), ("e", "n")]
    for left, right in merges:
        vocabulary.setdefault(left + right, len(vocabulary))
    first = len(vocabulary)
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [
            added(first, "<|endoftext|>"), added(first + 1, "<|end|>", lstrip=True),
            added(first + 2, "<mask>", lstrip=True, rstrip=True),
            added(first + 3, "abc", special=False, normalized=True, single_word=True)],
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": True},
        "post_processor": None, "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "vocab": vocabulary,
                  "merges": [f"{left} {right}" for left, right in merges]}}


TEXTS = [
    "", " ", "a", "[CLS]", "[CLS] a[SEP]", "a [MASK] b", "a\t\n [MASK]b", "[MASK][MASK]", "[M", "[MASK", "[cls]",
    "  <m>  ab", "a<m>b <m> <m>", "word", "a word.", "words word-word aword", "éword 東word word東", "word_ _word",
    "New York", "new york", "NEW  YORK", "ab New York City ab", "New York Citys", "Né́w York", "É é e E aÉ", "東É東",
    "한 [CLS]한", "\u1112\u1161\u11ab[SEP]", "a\u0301[CLS]\u0301b", "[CLS]\u200d[SEP]", "a\x00[CLS]\x01b",
    "<|endoftext|>", "a <|endoftext|> ab", "ab<|endoftext|>ab", " <|endoftext|>", "<|endoftext|> ", "a  <|end|>  b",
    "<|end|><|endoftext|><|end|>", "<|endoftext", "x <mask>\n\n y", "<mask> <mask>", "abc", "xabc abc abcx", "abc.abc",
    "<|endoftext|><mask>abc", "👨‍👩‍👧<|endoftext|>👨", "שלום [SEP] <|end|> مرحبا", "…\u2028<mask>\u3000a\u00a0<|end|>\u0085b",
]


def bytes_at(text, offset):
    return len(text[:offset].encode())


def main():
    cases = []
    for name, tokenizer in [("WordPiece, uncased", word_piece(True)), ("WordPiece, cased", word_piece(False)),
                            ("byte-level", byte_pair(False)), ("byte-level, prefixed", byte_pair(True))]:
        made = Tokenizer.from_str(json.dumps(tokenizer))
        texts = []
        for text in TEXTS:
            encoded = made.encode(text, add_special_tokens=False)
            row = {"text": text, "ids": encoded.ids}
            if name.startswith("Word"):
                row["bytes"] = [[bytes_at(text, b), bytes_at(text, e)] for b, e in encoded.offsets]
            texts.append(row)
        cases.append({"name": name, "tokenizer": tokenizer, "texts": texts})
    print(json.dumps({"made_by": "added_tokens.py, tokenizers 0.23.3", "cases": cases}, ensure_ascii=True))


main()
