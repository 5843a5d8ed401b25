#!/usr/bin/env python3
"""Small models of every family, made and measured by Hugging Face's own modules in f64.

    families.py                     writes CASE.json beside this file, for tests/model/families_test.cpp
    families.py CASE …              writes these
    families.py --fresh SEED DIR    writes folders DIR/CASE with normally distributed weights, and what was measured of
                                    them as DIR/CASE/golden.json, for python/tests/test_torch_families.py

Each file has a config.json as transformers writes it, the names and shapes of the tensors as transformers saves them,
and what its modules make of a few tokens: hidden states, logits, and the norms of the dense Jacobians, by autograd, of
every map of every layer. The weights themselves are a formula of their name (see `weight`), which the test in C++ has
as well. Needs torch and transformers.
"""

from __future__ import annotations

import json
import pathlib
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file

# transformers computes RMSNorm, rotary positions and softmax in f32, whatever the model's precision is. Here f32 means
# f64: what is compared is the mathematics.
torch.float32 = torch.float = torch.float64  # type: ignore[misc]
torch.Tensor.float = torch.Tensor.double  # type: ignore[method-assign]
torch.set_default_dtype(torch.float64)

IDS = [3, 11, 4, 2, 15, 9]
SMALL = dict(vocab_size=20, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12)
SMALL |= dict(max_position_embeddings=16, bos_token_id=0, eos_token_id=1, pad_token_id=2)
GROUPED = SMALL | dict(num_attention_heads=4, num_key_value_heads=2)
WIDE = GROUPED | dict(head_dim=4)
LLAMA3 = dict(rope_type="llama3", rope_theta=500.0, factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0)
LLAMA3 |= dict(original_max_position_embeddings=32)


@dataclass
class Case:
    """A small model, and where its modules are."""

    model: str  # the class
    config: dict[str, Any]
    layers: str = "layers"  # in the base model
    attention: str = "self_attn"  # in a layer: the module that reads what attention reads
    output: str = "self_attn.o_proj"
    # x + attn: what a module of the layer reads ("<") or gives (">"), or "+": the sum
    residual: str = "post_attention_layernorm<"
    older: dict[str, Any] = field(default_factory=dict)  # config.json as older versions wrote it; None: not there
    padding: tuple[int, int] = (0, 0)  # so many tokens at the beginning and at the end that attention_mask hides
    hides: list[int] = field(default_factory=list)  # layers whose window hides tokens of IDS, to be sure of it


BERT = dict(layers="encoder.layer", attention="attention.self", output="attention.output.dense")
BERT |= dict(residual="attention.output.LayerNorm>")
GPT2 = dict(layers="h", attention="attn", residual="ln_2<")
SMALL_GPT = dict(vocab_size=20, n_positions=16, n_embd=8, n_layer=2, n_head=2, n_inner=12, bos_token_id=0, eos_token_id=1)
ROPE = dict(rope_type="default", rope_theta=50.0)
MODERNBERT = SMALL | dict(num_hidden_layers=3, cls_token_id=0, sep_token_id=1)
MODERNBERT |= dict(rope_parameters=dict(full_attention=dict(rope_type="default", rope_theta=70.0),
                                        sliding_attention=dict(rope_type="default", rope_theta=30.0)))
VIT = dict(hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12)
VIT |= dict(image_size=4, patch_size=2, num_channels=3)
VISION = dict(attention="attention", output="attention.o_proj", residual="layernorm_after<")
MODERN = dict(attention="attn", output="attn.Wo", residual="mlp_norm<")

CASES: dict[str, Case] = {
    "gpt2": Case("GPT2LMHeadModel", SMALL_GPT, output="attn.c_proj", **GPT2),
    "bert": Case("BertModel", SMALL, **BERT),
    "bert_padded": Case("BertModel", SMALL, padding=(1, 2), **BERT),
    "bert_decoder": Case("BertModel", SMALL | dict(is_decoder=True), **BERT),
    "roberta": Case("RobertaForMaskedLM", SMALL | dict(type_vocab_size=1), **BERT),
    "xlm_roberta": Case("XLMRobertaModel", SMALL | dict(type_vocab_size=1, hidden_act="relu"), **BERT),
    "camembert": Case("CamembertModel", SMALL | dict(pad_token_id=1), **BERT),
    "distilbert": Case(
        "DistilBertForMaskedLM",
        dict(vocab_size=20, dim=8, n_layers=2, n_heads=2, hidden_dim=12, max_position_embeddings=16),
        layers="transformer.layer", attention="attention", output="attention.out_lin", residual="sa_layer_norm>",
    ),
    "electra": Case("ElectraForPreTraining", SMALL | dict(embedding_size=4), **BERT),
    "electra_same_width": Case("ElectraModel", SMALL | dict(embedding_size=8), **BERT),
    "albert": Case(
        "AlbertForMaskedLM",
        SMALL | dict(embedding_size=4, num_hidden_layers=4, num_hidden_groups=2),
        layers="encoder.albert_layer_groups", attention="attention", output="attention.dense",
        residual="attention.LayerNorm>",
    ),
    "mpnet": Case(
        "MPNetForMaskedLM", SMALL | dict(max_position_embeddings=64),
        layers="encoder.layer", attention="attention", output="attention.attn.o", residual="attention.LayerNorm>",
    ),
    "llama": Case("LlamaForCausalLM", WIDE | dict(rope_parameters=ROPE, attention_bias=True, mlp_bias=True)),
    "llama_older": Case(
        "LlamaForCausalLM", WIDE | dict(rope_parameters=ROPE),
        # Llama's modules take no notice of a window
        older=dict(rope_parameters=None, rope_theta=50.0, rope_scaling=None, sliding_window=3),
    ),
    "llama_padded": Case("LlamaForCausalLM", WIDE | dict(rope_parameters=ROPE), padding=(0, 3)),
    "llama_linear": Case(
        "LlamaForCausalLM", GROUPED | dict(rope_parameters=ROPE | dict(rope_type="linear", factor=3.0)),
        older=dict(rope_parameters=None, rope_theta=50.0, rope_scaling=dict(type="linear", factor=3.0)),
    ),
    "llama3": Case("LlamaForCausalLM", GROUPED | dict(head_dim=12, tie_word_embeddings=True, rope_parameters=LLAMA3)),
    "mistral": Case("MistralForCausalLM", WIDE | dict(sliding_window=6)),
    "mistral_window": Case("MistralForCausalLM", WIDE | dict(sliding_window=3), hides=[0, 1]),
    "mistral_padded": Case("MistralForCausalLM", WIDE | dict(sliding_window=4), padding=(0, 2), hides=[0, 1]),
    "qwen2": Case("Qwen2ForCausalLM", GROUPED | dict(tie_word_embeddings=True)),
    "qwen2_window": Case(
        "Qwen2ForCausalLM",
        GROUPED | dict(num_hidden_layers=3, use_sliding_window=True, sliding_window=2, max_window_layers=1),
        older=dict(layer_types=None), hides=[1, 2],
    ),
    "qwen3": Case("Qwen3ForCausalLM", WIDE),
    "qwen3_window": Case(
        "Qwen3ForCausalLM",
        WIDE | dict(use_sliding_window=True, sliding_window=4, layer_types=["sliding_attention", "full_attention"]),
        hides=[0],
    ),
    "gpt_neox": Case(
        "GPTNeoXForCausalLM", SMALL | dict(rope_parameters=ROPE | dict(partial_rotary_factor=0.5)),
        attention="attention", output="attention.dense", residual="+",
    ),
    "gpt_neox_older": Case(
        "GPTNeoXForCausalLM",
        SMALL | dict(use_parallel_residual=False, rope_parameters=ROPE | dict(partial_rotary_factor=0.5)),
        attention="attention", output="attention.dense",
        older=dict(rope_parameters=None, rotary_emb_base=50, rotary_pct=0.5),
    ),
    "opt": Case(
        "OPTForCausalLM",
        dict(vocab_size=20, hidden_size=8, num_hidden_layers=2, ffn_dim=12, max_position_embeddings=16,
             num_attention_heads=2, word_embed_proj_dim=8, activation_function="gelu"),
        layers="decoder.layers", output="self_attn.out_proj", residual="final_layer_norm<",
    ),
    "opt_post_norm": Case(
        "OPTModel",
        dict(vocab_size=20, hidden_size=8, num_hidden_layers=2, ffn_dim=12, max_position_embeddings=16,
             num_attention_heads=2, word_embed_proj_dim=8, do_layer_norm_before=False, enable_bias=False),
        layers="decoder.layers", output="self_attn.out_proj", residual="self_attn_layer_norm>",
    ),
    "phi": Case(
        "PhiForCausalLM", SMALL | dict(num_key_value_heads=2, rope_parameters=ROPE | dict(partial_rotary_factor=0.5)),
        output="self_attn.dense", residual="+",
    ),
    "phi3": Case("Phi3ForCausalLM", GROUPED | dict(pad_token_id=2, hidden_size=16)),
    "phi3_window": Case("Phi3ForCausalLM", GROUPED | dict(hidden_size=16, sliding_window=2), hides=[0, 1]),
    "phi3_partial": Case(
        "Phi3ForCausalLM", GROUPED | dict(hidden_size=16, rope_parameters=ROPE | dict(partial_rotary_factor=0.5)),
    ),
    "stablelm": Case(
        "StableLmForCausalLM",
        GROUPED | dict(hidden_size=16, use_qkv_bias=True, rope_parameters=ROPE | dict(partial_rotary_factor=0.5)),
    ),
    "stablelm_parallel": Case(
        "StableLmForCausalLM",
        GROUPED | dict(hidden_size=16, use_parallel_residual=True,
                       rope_parameters=ROPE | dict(partial_rotary_factor=0.5)),
        residual="+", older=dict(rope_parameters=None, rope_theta=50, partial_rotary_factor=0.5),
    ),
    "smollm3": Case("SmolLM3ForCausalLM", GROUPED | dict(no_rope_layer_interval=2)),
    "smollm3_window": Case(
        "SmolLM3ForCausalLM",
        GROUPED | dict(no_rope_layer_interval=2, use_sliding_window=True, sliding_window=3),
        older=dict(layer_types=None), hides=[1],
    ),
    "granite": Case(
        "GraniteForCausalLM",
        GROUPED | dict(embedding_multiplier=3.0, attention_multiplier=0.7, residual_multiplier=0.3, logits_scaling=4.0),
    ),
    "olmo": Case("OlmoForCausalLM", GROUPED),
    "olmo2": Case("Olmo2ForCausalLM", GROUPED, residual="mlp<"),
    "gemma": Case("GemmaForCausalLM", WIDE),
    "gemma_older": Case("GemmaForCausalLM", WIDE | dict(num_key_value_heads=1), older=dict(hidden_act="gelu")),
    "gemma3": Case(
        "Gemma3ForCausalLM",
        WIDE | dict(query_pre_attn_scalar=6, sliding_window=6, layer_types=["sliding_attention", "full_attention"],
                    rope_parameters=dict(full_attention=dict(rope_type="linear", rope_theta=50.0, factor=2.0),
                                         sliding_attention=dict(rope_type="default", rope_theta=20.0))),
        residual="pre_feedforward_layernorm<",
    ),
    "gemma3_window": Case(
        "Gemma3ForCausalLM",
        WIDE | dict(num_hidden_layers=3, query_pre_attn_scalar=6, sliding_window=3,
                    layer_types=["sliding_attention", "full_attention", "sliding_attention"]),
        residual="pre_feedforward_layernorm<", hides=[0, 2],
    ),
    "gemma3_older": Case(
        "Gemma3ForCausalLM",
        WIDE | dict(query_pre_attn_scalar=6, sliding_window=6, layer_types=["sliding_attention", "full_attention"],
                    rope_parameters=dict(full_attention=dict(rope_type="linear", rope_theta=50.0, factor=2.0),
                                         sliding_attention=dict(rope_type="default", rope_theta=20.0))),
        residual="pre_feedforward_layernorm<",
        older=dict(rope_parameters=None, layer_types=None, sliding_window_pattern=2, rope_theta=50.0,
                   rope_local_base_freq=20.0, rope_scaling=dict(rope_type="linear", factor=2.0)),
    ),
    "modernbert": Case("ModernBertModel", MODERNBERT, **MODERN),
    "modernbert_window": Case(
        "ModernBertForMaskedLM",
        MODERNBERT | dict(local_attention=5, norm_bias=True, attention_bias=True, mlp_bias=True),
        hides=[1, 2], **MODERN,
    ),
    "modernbert_older": Case(
        "ModernBertModel", MODERNBERT | dict(local_attention=4),
        older=dict(rope_parameters=None, layer_types=None, global_rope_theta=70.0, local_rope_theta=30.0,
                   global_attn_every_n_layers=2),
        hides=[1], **MODERN,
    ),
    "modernbert_padded": Case("ModernBertModel", MODERNBERT | dict(local_attention=4), padding=(2, 1), **MODERN,
                              hides=[1, 2]),
    "vit": Case("ViTForImageClassification", VIT, **VISION),
    "vit_without_bias": Case("ViTModel", VIT | dict(qkv_bias=False, hidden_act="relu"), **VISION),
    "gptj": Case("GPTJForCausalLM", SMALL_GPT | dict(n_head=2, rotary_dim=2), output="attn.out_proj",
                 **(GPT2 | dict(residual="+"))),
}


# ---- weights


def uniform(name: str, count: int) -> np.ndarray:
    """Numbers in [-1, 1): SplitMix64 from the FNV-1a hash of a name on."""
    hash_ = 0xCBF29CE484222325
    for byte in name.encode():
        hash_ = (hash_ ^ byte) * 0x100000001B3 % 2**64
    with np.errstate(over="ignore"):
        z = np.uint64(hash_) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1.0


def weight(name: str, shape: list[int]) -> torch.Tensor:
    """A tensor of a model: gains are near 1, the rest near 0."""
    values = uniform(name, int(np.prod(shape))).reshape(shape)
    if len(shape) == 1:
        values = 0.4 * values + (1.0 if name.endswith("weight") else 0.0)
    else:
        values = 0.7 * values
    return torch.from_numpy(values)


def make_folder(case: Case, folder: pathlib.Path, make: Callable[[str, list[int]], torch.Tensor] = weight) -> torch.nn.Module:
    """Saves the model with the given weights, in f64, with the config.json of older versions if there is one, and loads
    it again."""
    kind = getattr(transformers, case.model)
    kind(kind.config_class(**case.config)).save_pretrained(folder)
    tensors = load_file(folder / "model.safetensors")
    save_file({name: make(name, list(t.shape)).contiguous() for name, t in tensors.items()},
              folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    config = {k: v for k, v in (config | case.older).items() if v is not None or k not in case.older}
    (folder / "config.json").write_text(json.dumps(config))
    return kind.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager").eval()


# ---- maps


def first(value: Any) -> torch.Tensor:
    return value[0] if isinstance(value, tuple) else value


class Measured:
    """A model whose layers can be given any input, and looked into."""

    def __init__(self, case: Case, model: torch.nn.Module, ids: list[int]) -> None:
        self.case, self.model, self.ids = case, model, torch.tensor([ids])
        before, after = case.padding
        n = len(ids)
        self.asked = {"input_ids": self.ids}
        if self.reads_images:
            size = [model.config.num_channels, model.config.image_size, model.config.image_size]
            self.asked = {"pixel_values": torch.from_numpy(uniform("image", int(np.prod(size))).reshape([1, *size]))}
        if before + after > 0:
            self.asked["attention_mask"] = torch.tensor([[int(before <= i < n - after) for i in range(n)]])
        self.base = model.base_model
        listed = list(self.base.get_submodule(case.layers))
        if case.model.startswith("Albert"):  # a group is run for several layers
            listed = [group.albert_layers[0] for group in listed]
            each = model.config.num_hidden_layers // len(listed)
            self.calls = [(listed[i // each], i % each) for i in range(model.config.num_hidden_layers)]
        else:
            self.calls = [(layer, 0) for layer in listed]

    def run(self, give: dict[int, Any], look: Callable[[str, int, Any, Any], None], only: int | None = None) -> torch.Tensor:
        """The last hidden state. `give` has what a layer or its attention reads in place of what it would read, and
        `look` is told what modules read and give; head `only` is the only one that the output projection reads."""
        hooks, count = [], {}

        def reads(number: int, part: str) -> Callable[..., Any]:
            def hook(module: Any, args: Any, kwargs: Any) -> Any:
                if count.get(id(module), 0) != self.calls[number][1]:
                    return None
                if (number, part) in give:
                    if args:
                        args = (give[number, part], *args[1:])
                    else:
                        kwargs = kwargs | {"hidden_states": give[number, part]}
                if part == "output" and only is not None:
                    kept = torch.zeros_like(args[0])
                    width = kept.shape[-1] // self.heads
                    span = slice(only * width, (only + 1) * width)
                    kept[..., span] = args[0][..., span]
                    args = (kept, *args[1:])
                look(part + "<", number, args[0] if args else kwargs["hidden_states"], None)
                return args, kwargs

            return hook

        def gives(number: int, part: str) -> Callable[..., Any]:
            def hook(module: Any, args: Any, output: Any) -> None:
                if count.get(id(module), 0) == self.calls[number][1]:
                    look(part + ">", number, first(output), None)

            return hook

        def counted(module: Any, args: Any, output: Any) -> None:
            count[id(module)] = count.get(id(module), 0) + 1

        seen = set()
        for number, (layer, _) in enumerate(self.calls):
            parts = {"layer": layer, "attention": layer.get_submodule(self.case.attention),
                     "output": layer.get_submodule(self.case.output)}
            if self.case.residual != "+":
                parts["residual"] = layer.get_submodule(self.case.residual[:-1])
            for part, module in parts.items():
                hooks.append(module.register_forward_pre_hook(reads(number, part), with_kwargs=True))
                hooks.append(module.register_forward_hook(gives(number, part)))
                seen.add(module)
        for module in seen:
            hooks.append(module.register_forward_hook(counted))
        try:
            return self.base(**self.asked, **({"use_cache": False} if self.has_cache else {})).last_hidden_state
        finally:
            for hook in hooks:
                hook.remove()

    @property
    def reads_images(self) -> bool:
        return hasattr(self.model.config, "image_size")

    @property
    def has_cache(self) -> bool:
        return getattr(self.model.config, "use_cache", None) is not None

    @property
    def heads(self) -> int:
        return self.model.config.num_attention_heads

    def states(self) -> tuple[list[torch.Tensor], list[torch.Tensor], torch.Tensor]:
        """Of each layer its input and that of its attention, and the last hidden state."""
        layers: dict[int, torch.Tensor] = {}
        attention: dict[int, torch.Tensor] = {}

        def look(what: str, number: int, value: torch.Tensor, _: Any) -> None:
            if what == "layer<":
                layers[number] = value.detach()
            if what == "attention<":
                attention[number] = value.detach()

        last = self.run({}, look).detach()
        order = range(len(self.calls))
        return [layers[i] for i in order], [attention[i] for i in order], last

    def map(self, name: str, layer: int, head: int | None = None) -> Callable[[torch.Tensor], torch.Tensor]:
        """A map of a layer, as lipscope has it."""

        def f(x: torch.Tensor) -> torch.Tensor:
            found: dict[tuple[str, int], torch.Tensor] = {}

            def look(what: str, number: int, value: torch.Tensor, _: Any) -> None:
                found[what, number] = value

            read = "attention" if name in ("core", "attn") else "layer"
            last = self.run({(layer, read): x}, look, head)
            if name == "core":
                core = found["output<", layer]
                width = core.shape[-1] // self.heads
                return core if head is None else core[..., head * width : (head + 1) * width]
            if name == "attn":
                return found["output>", layer]
            if name == "residual":
                if self.case.residual == "+":
                    return x + found["output>", layer]
                return found["residual" + self.case.residual[-1], layer]
            return found["layer>", layer] if name == "block" else last

        return f


def norms(f: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> list[float]:
    """‖J‖₂ and ‖J‖_F of the dense Jacobian at x."""
    jacobian = torch.autograd.functional.jacobian(f, x).reshape(-1, x.numel())
    return [float(torch.linalg.svdvals(jacobian)[0]), float(jacobian.norm())]


def require_hidden(m: Measured) -> None:
    """That the windows of the case's layers, and of no others, hide tokens from the last one."""
    _, attention, _ = m.states()
    n = attention[0].shape[1]
    before, after = m.case.padding
    found = []
    for i, x in enumerate(attention):
        jacobian = torch.autograd.functional.jacobian(m.map("attn", i), x)[0, :, :, 0]
        reached = jacobian.abs().amax(dim=(1, 3)) > 0  # [token, token it may depend on]
        visible = range(before, n - after)
        if any(not reached[n - 1, j] for j in visible):
            found.append(i)
    if found != m.case.hides:
        raise RuntimeError(f"windows hide tokens in the layers {found}, expected {m.case.hides}")


def constants(m: Measured) -> list[dict[str, Any]]:
    """The norms of every map: of all heads, of each, and of the whole model."""
    layers, attention, _ = m.states()
    found = []
    for i in range(len(layers)):
        for name in ("core", "attn", "residual", "block"):
            x = attention[i] if name in ("core", "attn") else layers[i]
            found.append({"map": name, "layer": i, "norms": norms(m.map(name, i), x)})
        for head in range(m.heads):
            found.append({"map": "attn", "layer": i, "head": head, "norms": norms(m.map("attn", i, head), attention[i])})
    found.append({"map": "model", "norms": norms(m.map("model", 0), layers[0])})
    return found


def golden(case: Case, folder: pathlib.Path, make: Callable[[str, list[int]], torch.Tensor] = weight) -> dict[str, Any]:
    """Makes a folder, and all that tests compare with."""
    model = make_folder(case, folder, make)
    m = Measured(case, model, IDS)
    require_hidden(m)
    layers, _, last = m.states()
    result = {
        "config": json.loads((folder / "config.json").read_text()),
        "tensors": {name: list(t.shape) for name, t in load_file(folder / "model.safetensors").items()},
        **({"embedded": layers[0][0].tolist()} if m.reads_images else {"ids": IDS}),
        **({"padding": list(case.padding)} if any(case.padding) else {}),
        "layer_input_frobenius": [float(x.norm()) for x in layers],
        "last": last[0].tolist(),
        "constants": constants(m),
    }
    if case.model.endswith("ForCausalLM") or case.model.endswith("LMHeadModel"):
        result["logits_of_last"] = model(**m.asked).logits[0, -1].tolist()
    return result


def write(found: dict[str, Any], path: pathlib.Path) -> None:
    """One line for each key."""
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in found.items())
    path.write_text("{\n" + lines + "\n}\n")


def fresh(seed: int, folder: pathlib.Path) -> None:
    """Every case with other weights."""
    generator = torch.Generator().manual_seed(seed)

    def make(name: str, shape: list[int]) -> torch.Tensor:
        gain = 1.0 if len(shape) == 1 and name.endswith("weight") else 0.0
        return gain + 0.35 * torch.randn(shape, generator=generator)

    for name, case in CASES.items():
        (folder / name).mkdir()
        write(golden(case, folder / name, make), folder / name / "golden.json")


def main() -> None:
    if sys.argv[1:2] == ["--fresh"]:
        fresh(int(sys.argv[2]), pathlib.Path(sys.argv[3]))
        return
    for name in sys.argv[1:] or CASES:
        with tempfile.TemporaryDirectory() as folder:
            found = golden(CASES[name], pathlib.Path(folder))
        write(found, pathlib.Path(__file__).parent / f"{name}.json")
        print(name, found["constants"][-1]["norms"], flush=True)


if __name__ == "__main__":
    main()
