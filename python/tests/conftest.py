"""What tests share: the program of the same build, and small folders and layers."""

import json
import os
import struct
import subprocess

import numpy as np
import pytest


@pytest.fixture(scope="session")
def program():
    path = os.environ.get("LIPSCOPE_PROGRAM")
    if not path:
        pytest.skip("LIPSCOPE_PROGRAM does not name the program")

    def run(*arguments):
        done = subprocess.run([path, *map(str, arguments)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, array in tensors.items():
        raw = np.ascontiguousarray(array, dtype="<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


@pytest.fixture(scope="session")
def bert(tmp_path_factory):
    """A folder with a small BERT with random weights, and a text for it."""
    folder = tmp_path_factory.mktemp("bert")
    width, layers, inner = 16, 2, 32
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz", "the", "whale", "sea"]
    config = {
        "model_type": "bert", "architectures": ["BertModel"], "hidden_size": width, "num_hidden_layers": layers,
        "num_attention_heads": 2, "intermediate_size": inner, "max_position_embeddings": 64, "vocab_size": len(words),
        "type_vocab_size": 2, "hidden_act": "gelu", "layer_norm_eps": 1e-12, "position_embedding_type": "absolute",
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    rng = np.random.default_rng(0)

    def normal(*shape):
        return 0.3 * rng.standard_normal(shape)

    tensors = {
        "embeddings.word_embeddings.weight": normal(len(words), width),
        "embeddings.position_embeddings.weight": normal(64, width),
        "embeddings.token_type_embeddings.weight": normal(2, width),
        "embeddings.LayerNorm.weight": 1 + normal(width),
        "embeddings.LayerNorm.bias": normal(width),
    }
    for layer in range(layers):
        at = f"encoder.layer.{layer}."
        for name in ("query", "key", "value"):
            tensors[f"{at}attention.self.{name}.weight"] = normal(width, width)
            tensors[f"{at}attention.self.{name}.bias"] = normal(width)
        for name, rows, cols in (
            ("attention.output", width, width),
            ("intermediate", inner, width),
            ("output", width, inner),
        ):
            tensors[f"{at}{name}.dense.weight"] = normal(rows, cols)
            tensors[f"{at}{name}.dense.bias"] = normal(rows)
        for name in ("attention.output", "output"):
            tensors[f"{at}{name}.LayerNorm.weight"] = 1 + normal(width)
            tensors[f"{at}{name}.LayerNorm.bias"] = normal(width)
    write_safetensors(folder / "model.safetensors", tensors)
    (folder / "text.txt").write_text("the whale the sea a b c d e the whale " * 30)
    return folder


def hardest_values(steps, epsilon, unknowns=520):
    """Singular values that hide the largest one, 1, best from so many steps (see tests/spectral)."""
    theta = (2 * (np.arange(1, unknowns) % steps) + 1) * np.pi / (2 * (2 * steps - 1))
    return np.concatenate([[1.0], np.sqrt(1 - epsilon) * np.cos(theta)])


@pytest.fixture
def layer():
    import lipscope

    rng = np.random.default_rng(1)
    q, k, v, o = (0.3 * rng.standard_normal((12, 12)) for _ in range(4))
    return lipscope.Attention(q=q, k=k, v=v, o=o, heads=3, mask="causal")
