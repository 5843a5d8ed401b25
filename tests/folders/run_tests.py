"""Folders with one thing wrong are refused: exit code 2, and a message with the file, the key or tensor, the numbers.

Usage: run_tests.py PROGRAM [--show]    (--show prints the messages)

Each case changes one thing in a small BERT, GPT-2 or Llama that the program reads.
"""

import json
import math
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
from small_folders import TEXT, Folder  # noqa: E402

PROGRAM = sys.argv[1]

# ---- what is wrong with each: name, kind, change, words of the message

QUERY = "encoder.layer.1.attention.self.query.weight"
CASES = []


def case(name, words, kind="bert"):
    def add(change):
        CASES.append((name, kind, change, words))
    return add


def config_key(name, key, value, words=None, kind="bert"):
    """One key of config.json has another value (None: is absent)."""
    def change(f):
        if value is None:
            del f.config[key]
        else:
            f.config[key] = value
    CASES.append((name, kind, change, ["config.json", *(words if words is not None else [key, json.dumps(value)])]))


def file_content(name, file, content, words, kind="bert"):
    CASES.append((name, kind, lambda f: f.files.__setitem__(file, content), words))


file_content("config absent", "config.json", None, ["config.json"])
file_content("config empty", "config.json", b"", ["config.json"])
file_content("config cut", "config.json", b'{"model_type": "bert", "hidden', ["config.json"])
file_content("config is a list", "config.json", b"[1, 2]", ["config.json", "object"])
file_content("config not UTF-8", "config.json", b'{"model_type": "\xff\xfe"}', ["config.json", "UTF-8"])
file_content("config nested too deep", "config.json", b"[" * 100000, ["config.json"])
config_key("no model type", "model_type", None, ["model_type"])
config_key("model type is a number", "model_type", 3)
config_key("model type unknown", "model_type", "mamba")
config_key("width is a string", "hidden_size", "8")
config_key("width is negative", "hidden_size", -8)
config_key("width is zero", "hidden_size", 0)
config_key("width is a fraction", "hidden_size", 8.5)
config_key("width is huge", "hidden_size", 10**18, ["hidden_size", "1000000000000000000"])
config_key("layers beyond 64 bits", "num_hidden_layers", 10**30, ["num_hidden_layers"])
config_key("heads do not divide the width", "num_attention_heads", 3,
           ["hidden_size is 8", "num_attention_heads is 3"])
file_content("heads do not divide the width, under the names of GPT-2", "config.json",
             b'{"model_type": "gpt2", "n_embd": 8, "n_head": 3}', ["config.json", "n_embd is 8", "n_head is 3"])
config_key("heads are zero", "num_attention_heads", 0)
config_key("eps is negative", "layer_norm_eps", -1.0, ["layer_norm_eps", "-1"])
config_key("activation unknown", "hidden_act", "tanhexp")
config_key("activation is a list", "hidden_act", ["gelu"], ["hidden_act"])
config_key("key heads do not divide the heads", "num_key_value_heads", 3,
           ["num_attention_heads is 4", "num_key_value_heads is 3", "4 heads", "3 key heads"], "llama")
config_key("rotary base is negative", "rope_theta", -1.0, ["rope_theta", "-1"], "llama")
config_key("rotary base is a string", "rope_theta", "big", ["rope_theta", "big"], "llama")


@case("more layers in the config than in the weights", ["encoder.layer.2.attention.self.query.weight", "missing"])
def _(f):
    f.config["num_hidden_layers"] = 3


@case("no width, and the usual one is not that of the weights",
      ["model.safetensors", "encoder.layer.0.attention.self.query.weight", "[8, 8]", "[768, 768]"])
def _(f):
    del f.config["hidden_size"]


@case("width of the config is not that of the weights",
      ["model.safetensors", "encoder.layer.0.attention.self.query.weight", "[8, 8]", "[16, 16]"])
def _(f):
    f.config["hidden_size"] = 16


@case("vocabulary of the config is not that of the weights", ["word_embeddings", "11", "10"])
def _(f):
    f.config["vocab_size"] = 11


@case("key heads of the config are not those of the weights", ["k_proj", "8", "4"], "llama")
def _(f):
    f.config["num_key_value_heads"] = 4


file_content("weights absent", "model.safetensors", None, ["safetensors"])
file_content("weights empty", "model.safetensors", b"", ["model.safetensors", "0 bytes"])
file_content("weights are text", "model.safetensors", b"version https://git-lfs.github.com/spec/v1\noid sha256:12\n",
             ["model.safetensors"])


@case("weights cut", ["model.safetensors"])
def _(f):
    f.files["model.safetensors"] = f.tensor_file()[:-100]


@case("weights cut within the header", ["model.safetensors"])
def _(f):
    f.files["model.safetensors"] = f.tensor_file()[:50]


@case("bytes after the weights", ["model.safetensors"])
def _(f):
    f.files["model.safetensors"] = f.tensor_file() + b"more"


@case("header size is huge", ["model.safetensors"])
def _(f):
    f.files["model.safetensors"] = struct.pack("<Q", 2**63) + f.tensor_file()[8:]


@case("a tensor is missing", [QUERY, "needs it"])
def _(f):
    f.header["unknown"] = f.header.pop(QUERY)


@case("a tensor has integers", ["model.safetensors", QUERY, "I32"])
def _(f):
    f.header[QUERY]["dtype"] = "I32"


@case("a tensor has an unknown number format", ["model.safetensors", QUERY, "F33"])
def _(f):
    f.header[QUERY]["dtype"] = "F33"


@case("a tensor has another shape", ["model.safetensors", QUERY, "4", "16", "8"])
def _(f):
    f.header[QUERY]["shape"] = [4, 16]


@case("a tensor has three axes", ["model.safetensors", QUERY, "2", "4", "8"])
def _(f):
    f.header[QUERY]["shape"] = [2, 4, 8]


@case("a shape and its bytes differ", ["model.safetensors", QUERY, "256 bytes", "2592 bits"])
def _(f):
    f.header[QUERY]["shape"] = [9, 9]


@case("a shape is negative", ["model.safetensors", QUERY, "-8"])
def _(f):
    f.header[QUERY]["shape"] = [-8, -8]


@case("a shape whose product wraps", ["model.safetensors", QUERY])
def _(f):
    f.header[QUERY]["shape"] = [2**33, 2**33]


@case("offsets beyond the end", ["model.safetensors", "query.bias", "bytes 6944 to 7200 belong to no tensor"])
def _(f):
    f.header[QUERY]["data_offsets"] = [10**6, 10**6 + 256]


@case("offsets that overlap", ["model.safetensors"])
def _(f):
    f.header[QUERY]["data_offsets"] = [0, 256]


@case("a tensor is there twice", ["model.safetensors", QUERY, "twice"])
def _(f):
    text = json.dumps(f.header)
    f.files["model.safetensors"] = f.tensor_file(text[:-1] + f', "{QUERY}": ' + json.dumps(f.header[QUERY]) + "}")


@case("a weight is not a number", ["model.safetensors", QUERY, "nan"])
def _(f):
    f.put(QUERY, 5, math.nan)


@case("a weight is infinite", ["model.safetensors", QUERY, "inf"])
def _(f):
    f.put(QUERY, 5, -math.inf)


@case("an embedding is not a number", ["model.safetensors", "word_embeddings", "nan"])
def _(f):
    f.put("embeddings.word_embeddings.weight", 8 * 6, math.nan)


@case("a shard is missing", ["model.safetensors.index.json", "b.safetensors"])
def _(f):
    f.index_with(lambda name: "b.safetensors")


@case("a shard lacks a tensor", ["a.safetensors", QUERY])
def _(f):
    f.header["unknown"] = f.header.pop(QUERY)
    f.header[QUERY] = f.header["unknown"]
    names = dict(f.header)
    del f.header[QUERY]
    content = f.tensor_file()
    f.header = names
    f.index_with(lambda name: "a.safetensors")
    f.files["a.safetensors"] = content


@case("a shard outside the folder", ["model.safetensors.index.json", "../outside.safetensors"])
def _(f):
    f.index_with(lambda name: "../outside.safetensors")


@case("a shard with an absolute path", ["model.safetensors.index.json", "/etc/passwd"])
def _(f):
    f.index_with(lambda name: "/etc/passwd")


@case("a shard that is no name", ["model.safetensors.index.json", "embeddings.LayerNorm.bias", "string"])
def _(f):
    f.index_with(lambda name: 7)


@case("an index without a map", ["model.safetensors.index.json", "weight_map"])
def _(f):
    f.index_with(lambda name: "a.safetensors")
    f.files["model.safetensors.index.json"] = b'{"metadata": {}}'


@case("an index that is cut", ["model.safetensors.index.json"])
def _(f):
    f.index_with(lambda name: "a.safetensors")
    f.files["model.safetensors.index.json"] = f.files["model.safetensors.index.json"][:40]


file_content("tokenizer absent", "tokenizer.json", None, ["tokenizer.json"])
file_content("tokenizer empty", "tokenizer.json", b"", ["tokenizer.json"])
file_content("tokenizer cut", "tokenizer.json", b'{"version": "1.0", "model": {"type"', ["tokenizer.json"])


@case("tokenizer model unknown", ["tokenizer.json", "model", "CharBERT"])
def _(f):
    f.tokenizer["model"]["type"] = "CharBERT"


@case("tokenizer without a vocabulary", ["tokenizer.json", "vocab"])
def _(f):
    del f.tokenizer["model"]["vocab"]


@case("vocabulary with a word for a number", ["tokenizer.json", "whale", "six"])
def _(f):
    f.tokenizer["model"]["vocab"]["whale"] = "six"


@case("vocabulary with a negative number", ["tokenizer.json", "whale", "-6"])
def _(f):
    f.tokenizer["model"]["vocab"]["whale"] = -6


@case("two words with one number", ["tokenizer.json", "5"])
def _(f):
    f.tokenizer["model"]["vocab"]["whale"] = 5


@case("tokenizer knows more words than the model", ["tokenizer has 100 pieces", "vocabulary of 10", "vocab_size of config.json"])
def _(f):
    f.tokenizer["model"]["vocab"]["whale"] = 99


@case("normalizer unknown", ["tokenizer.json", "normalizer", "Shout"])
def _(f):
    f.tokenizer["normalizer"] = {"type": "Shout"}


# ---- what is run

def ran(folder, text):
    return subprocess.run([PROGRAM, "measure", folder, "--text", text, "--lengths", "4", "--samples", "1", "--quiet"],
                          capture_output=True, text=True, timeout=60)


def main():
    failures = []
    show = "--show" in sys.argv
    with tempfile.TemporaryDirectory() as place:
        place = Path(place)
        text = place / "text.txt"
        text.write_text(TEXT)
        (place / "outside.safetensors").write_bytes(Folder("bert").tensor_file())
        for kind in ("bert", "llama"):
            Folder(kind).write(place / kind)
            good = ran(place / kind, text)
            if good.returncode != 0:
                failures.append(f"the sound folder of {kind} is refused: {good.stderr}")
        sharded = Folder("bert")
        sharded.index_with(lambda name: "a.safetensors")
        sharded.write(place / "sharded")
        if ran(place / "sharded", text).returncode != 0:
            failures.append("the sound folder with an index is refused")
        for number, (name, kind, change, words) in enumerate(CASES):
            folder = Folder(kind)
            change(folder)
            folder.write(place / f"case{number}")
            done = ran(place / f"case{number}", text)
            message = done.stderr.replace(str(place), "")
            if show:
                print(f"{name}: {done.returncode}\n    {message.strip()}")
            missing = [word for word in words if word not in message]
            if done.returncode != 2:
                failures.append(f"{name}: exit code {done.returncode}: {message}")
            elif missing:
                failures.append(f"{name}: the message lacks {missing}: {message}")
            elif done.stdout:
                failures.append(f"{name}: printed a result")
            elif len(message) > 1000 or not message.replace("\n", "").isprintable():
                failures.append(f"{name}: no message for people: {message!r}")
    for failure in failures:
        print("FAILED", failure)
    print(f"{len(CASES) - len(failures)} passed, {len(failures)} failed")
    return 1 if failures or len(CASES) < 40 else 0


sys.exit(main())
