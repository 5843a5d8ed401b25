"""Folders with one thing wrong are refused: exit code 2, and a message with the file, the key or tensor, the numbers.

Usage: run_tests.py PROGRAM [--show]    (--show prints the messages)

Each case changes one thing in a small BERT, GPT-2 or Llama that the program reads.
"""

import json
import math
import random
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = sys.argv[1]
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "whale", "sea", "##s", "a"]
TEXT = "the whale the sea a whales the seas " * 20


# ---- sound folders

def bert_config():
    return {"model_type": "bert", "architectures": ["BertModel"], "vocab_size": len(WORDS), "hidden_size": 8,
            "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16, "hidden_act": "gelu",
            "max_position_embeddings": 32, "type_vocab_size": 2, "layer_norm_eps": 1e-12}


def bert_shapes():
    d, inner = 8, 16
    shapes = {"embeddings.word_embeddings.weight": [len(WORDS), d], "embeddings.position_embeddings.weight": [32, d],
              "embeddings.token_type_embeddings.weight": [2, d], "embeddings.LayerNorm.weight": [d],
              "embeddings.LayerNorm.bias": [d]}
    for layer in range(2):
        for name, rows, columns in (("attention.self.query", d, d), ("attention.self.key", d, d),
                                    ("attention.self.value", d, d), ("attention.output.dense", d, d),
                                    ("intermediate.dense", inner, d), ("output.dense", d, inner)):
            shapes[f"encoder.layer.{layer}.{name}.weight"] = [rows, columns]
            shapes[f"encoder.layer.{layer}.{name}.bias"] = [rows]
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes[f"encoder.layer.{layer}.{name}.weight"] = [d]
            shapes[f"encoder.layer.{layer}.{name}.bias"] = [d]
    return shapes


def bert_tokenizer():
    return {"version": "1.0", "truncation": None, "padding": None,
            "added_tokens": [{"id": i, "content": WORDS[i], "single_word": False, "lstrip": False, "rstrip": False,
                              "normalized": False, "special": True} for i in range(5)],
            "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                           "strip_accents": None, "lowercase": True},
            "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": None,
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                      "max_input_chars_per_word": 100, "vocab": {w: i for i, w in enumerate(WORDS)}}}


def llama_config():
    return {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": len(WORDS), "hidden_size": 8,
            "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 16,
            "hidden_act": "silu", "max_position_embeddings": 32, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
            "tie_word_embeddings": True}


def llama_shapes():
    d, key, inner = 8, 4, 16
    layer = "model.layers.0."
    return {"model.embed_tokens.weight": [len(WORDS), d], "model.norm.weight": [d],
            layer + "input_layernorm.weight": [d], layer + "post_attention_layernorm.weight": [d],
            layer + "self_attn.q_proj.weight": [d, d], layer + "self_attn.k_proj.weight": [key, d],
            layer + "self_attn.v_proj.weight": [key, d], layer + "self_attn.o_proj.weight": [d, d],
            layer + "mlp.gate_proj.weight": [inner, d], layer + "mlp.up_proj.weight": [inner, d],
            layer + "mlp.down_proj.weight": [d, inner]}


class Folder:
    """What a folder holds, before it is written: everything may be changed."""

    def __init__(self, kind):
        self.config = bert_config() if kind == "bert" else llama_config()
        shapes = bert_shapes() if kind == "bert" else llama_shapes()
        self.tokenizer = bert_tokenizer()
        draw = random.Random(1)
        self.header, self.data = {}, b""
        for name, shape in shapes.items():
            values = [draw.gauss(0, 0.5) for _ in range(math.prod(shape))]
            begin = len(self.data)
            self.data += struct.pack(f"<{len(values)}f", *values)
            self.header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, len(self.data)]}
        self.files = {}  # in place of what is made of the above; None: left out

    def put(self, name, index, value):
        begin = self.header[name]["data_offsets"][0] + 4 * index
        self.data = self.data[:begin] + struct.pack("<f", value) + self.data[begin + 4:]

    def tensor_file(self, header_text=None):
        text = (header_text or json.dumps(self.header)).encode()
        return struct.pack("<Q", len(text)) + text + self.data

    def index_with(self, shard_of):
        """The weights in the file a.safetensors, with an index."""
        self.files["model.safetensors"] = None
        self.files["a.safetensors"] = self.tensor_file()
        self.files["model.safetensors.index.json"] = json.dumps(
            {"metadata": {}, "weight_map": {name: shard_of(name) for name in self.header}}).encode()

    def write(self, folder):
        files = {"config.json": json.dumps(self.config).encode(), "tokenizer.json": json.dumps(self.tokenizer).encode(),
                 "model.safetensors": self.tensor_file(), **self.files}
        folder.mkdir()
        for name, content in files.items():
            if content is not None:
                (folder / name).write_bytes(content)


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
config_key("heads do not divide the width", "num_attention_heads", 3, ["8", "3"])
config_key("heads are zero", "num_attention_heads", 0)
config_key("eps is negative", "layer_norm_eps", -1.0, ["layer_norm_eps", "-1"])
config_key("activation unknown", "hidden_act", "tanhexp")
config_key("activation is a list", "hidden_act", ["gelu"], ["hidden_act"])
config_key("key heads do not divide the heads", "num_key_value_heads", 3, ["4 heads", "3 key heads"], "llama")
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


@case("offsets beyond the end", ["model.safetensors", "query.bias", "bytes 3872 to 4128 belong to no tensor"])
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


@case("tokenizer knows more words than the model", ["tokenizer has 100 pieces", "vocabulary of 10"])
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
