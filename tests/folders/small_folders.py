"""Small Hugging Face folders of BERT and Llama with random weights, made by the standard library alone."""

import json
import math
import random
import struct

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "whale", "sea", "##s", "a"]
TEXT = "the whale the sea a whales the seas " * 20
POSITIONS = 128


def bert_config():
    return {"model_type": "bert", "architectures": ["BertModel"], "vocab_size": len(WORDS), "hidden_size": 8,
            "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16, "hidden_act": "gelu",
            "max_position_embeddings": POSITIONS, "type_vocab_size": 2, "layer_norm_eps": 1e-12}


def bert_shapes():
    d, inner = 8, 16
    shapes = {"embeddings.word_embeddings.weight": [len(WORDS), d],
              "embeddings.position_embeddings.weight": [POSITIONS, d],
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
            "hidden_act": "silu", "max_position_embeddings": POSITIONS, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
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
