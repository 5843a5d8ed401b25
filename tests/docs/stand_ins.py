"""Small models, texts and tensors under the names that the documents use, so
that their commands can be run on a machine that has no model."""

import json
import pathlib
import random
import string
import struct

import markdown

WIDTH, HEADS, POSITIONS = 24, 12, 1024


def write_tensors(path, tensors):
    """{name: (shape, numbers)} as a safetensors file of f64."""
    header, data = {}, b""
    for name, (shape, numbers) in tensors.items():
        block = struct.pack(f"<{len(numbers)}d", *numbers)
        header[name] = {
            "dtype": "F64",
            "shape": shape,
            "data_offsets": [len(data), len(data) + len(block)],
        }
        data += block
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_matrix(path, rows, columns, dice):
    """A matrix of normal numbers as an .npy file of f64."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, {columns}), }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    numbers = [dice.gauss(0, 1) for _ in range(rows * columns)]
    path.write_bytes(
        b"\x93NUMPY\x01\x00"
        + struct.pack("<H", len(header))
        + header.encode()
        + struct.pack(f"<{len(numbers)}d", *numbers)
    )


class Weights:
    """Tensors with normal numbers, and norms near the identity."""

    def __init__(self, seed):
        self.dice = random.Random(seed)
        self.tensors = {}

    def add(self, name, *shape, mean=0.0):
        count = shape[0] * (shape[1] if len(shape) == 2 else 1)
        self.tensors[name] = (list(shape), [self.dice.gauss(mean, 0.2) for _ in range(count)])

    def linear(self, name, outputs, inputs):
        self.add(f"{name}.weight", outputs, inputs)
        self.add(f"{name}.bias", outputs if "c_" not in name else inputs)

    def norm(self, name):
        self.add(f"{name}.weight", WIDTH, mean=1.0)
        self.add(f"{name}.bias", WIDTH)


def write_bert(folder):
    """Six layers with twelve heads, as MiniLM has; its vocabulary is single
    characters and a few words."""
    pieces = list(string.ascii_lowercase + string.digits + string.punctuation)
    words = ["the", "of", "and", "is", "a", "in", "to", "at", "layer", "##ing", "##ed", "##s"]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + pieces
    vocabulary += ["##" + piece for piece in pieces] + words[1:]
    vocabulary = list(dict.fromkeys(vocabulary))
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    config = {
        "model_type": "bert",
        "vocab_size": len(vocabulary),
        "num_hidden_layers": 6,
        "hidden_size": WIDTH,
        "num_attention_heads": HEADS,
        "intermediate_size": 48,
        "max_position_embeddings": POSITIONS,
        "type_vocab_size": 2,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
    }
    (folder / "config.json").write_text(json.dumps(config))
    weights = Weights(1)
    weights.norm("embeddings.LayerNorm")
    weights.add("embeddings.word_embeddings.weight", len(vocabulary), WIDTH)
    weights.add("embeddings.position_embeddings.weight", POSITIONS, WIDTH)
    weights.add("embeddings.token_type_embeddings.weight", 2, WIDTH)
    for layer in range(6):
        name = f"encoder.layer.{layer}"
        for part in ("query", "key", "value"):
            weights.linear(f"{name}.attention.self.{part}", WIDTH, WIDTH)
        weights.linear(f"{name}.attention.output.dense", WIDTH, WIDTH)
        weights.norm(f"{name}.attention.output.LayerNorm")
        weights.linear(f"{name}.intermediate.dense", 48, WIDTH)
        weights.linear(f"{name}.output.dense", WIDTH, 48)
        weights.norm(f"{name}.output.LayerNorm")
    write_tensors(folder / "model.safetensors", weights.tensors)


def write_gpt2(folder):
    """Twelve layers of attention alone, with twelve heads, as GPT-2 has them."""
    folder.mkdir()
    config = {
        "model_type": "gpt2",
        "vocab_size": 100,
        "n_layer": 12,
        "n_embd": WIDTH,
        "n_head": HEADS,
        "n_positions": POSITIONS,
        "layer_norm_epsilon": 1e-5,
        "activation_function": "gelu_new",
    }
    (folder / "config.json").write_text(json.dumps(config))
    weights = Weights(2)
    for layer in range(12):
        weights.norm(f"h.{layer}.ln_1")
        weights.linear(f"h.{layer}.attn.c_attn", WIDTH, 3 * WIDTH)
        weights.linear(f"h.{layer}.attn.c_proj", WIDTH, WIDTH)
    write_tensors(folder / "model.safetensors", weights.tensors)


def write_all(folder):
    """Everything that the documents read, but for what their own commands make."""
    write_bert(folder / "bert")
    for name in ("MODEL_DIR", "minilm", "MiniLM", "minilm-l6-v2-fp16"):
        (folder / name).symlink_to("bert")
    write_gpt2(folder / "gpt2")
    (folder / "gpt2-124M-attention-only").symlink_to("gpt2")
    # one page again and again: all texts have the same characters
    page = (markdown.ROOT / "README.md").read_text(encoding="utf-8").encode("ascii", "ignore").decode()
    text = ("ROMEO: " + page[:8000]) * 100
    lengths = {"tinyshakespeare.txt": 600_000, "alice29.txt": 100_000, "shakespeare.txt": 20_000}
    for name, length in {**lengths, "my.txt": 150, "FILE": 150, "TEXT": 150}.items():
        (folder / name).write_text(text[:length], encoding="utf-8")
    dice = random.Random(3)
    for name in ("x.npy", "Y.npy"):
        write_matrix(folder / name, 5, WIDTH, dice)
    layer = Weights(4)
    for name in "qkvo":
        layer.add(name, WIDTH, WIDTH)
    layer.add("x", 5, WIDTH)
    write_tensors(folder / "layer.safetensors", layer.tensors)


# what `lipscope train` is asked for, where a document reads a folder that it
# does not make, or makes by a command that takes too long to be run
def training_of(name):
    """The options of a tiny model for the folder runs/NAME."""
    size = "--layers 1 --width 16 --heads 2 --batch 2 --steps 2 --measure 0 --quiet"
    if name.startswith("inv"):
        return f"--invertible --context 256 {size}".split()
    if name.startswith("l"):
        return f"--model l2 --norm none --context 64 {size}".split()
    return f"--context 64 {size}".split()


def folder_of_run(words):
    """The folder runs/NAME that a command reads, or None."""
    written = words[words.index("--out") + 1] if "--out" in words else ""
    for word in words[1:]:
        parts = pathlib.PurePosixPath(word).parts
        if parts[:1] == ("runs",) and not written.startswith("runs/"):
            return "/".join(parts[:2])
    return None
