"""Lipschitz attention in place of the attention of an existing model: replace_attention."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from lipscope.errors import InputError
from lipscope.torch.rotary import RotaryL2SelfAttention
from lipscope.torch.self_attention import (
    ContractiveL2SelfAttention,
    CosineSelfAttention,
    L2SelfAttention,
    SelfAttention,
    SigmoidSelfAttention,
)

_KINDS: dict[str, type[SelfAttention]] = {
    "l2": L2SelfAttention,
    "contractive-l2": ContractiveL2SelfAttention,
    "cosine": CosineSelfAttention,
    "sigmoid": SigmoidSelfAttention,
}
_NAMES = {"q": "q_proj", "k": "k_proj", "v": "v_proj", "o": "out_proj"}


@dataclass(frozen=True)
class Replaced:
    """What replace_attention did. As text it says so, and what is lost."""

    kind: str
    weights: str
    layers: dict[str, SelfAttention]
    """The new modules, by the paths of the layers that they replaced."""

    def __str__(self) -> str:
        kept = self.weights == "kept"
        begin = "the query, value and output weights that were there" if kept else "new random weights"
        return (
            f"{len(self.layers)} attention layers are {self.kind} now: {', '.join(self.layers)}\n"
            f"They begin with {begin}, and are another function than before.\n"
            "Pretrained weights do not carry over: fine-tune the model before it is used."
        )


def replace_attention(model: nn.Module, kind: str = "l2", *, weights: str = "new", **options: Any) -> Replaced:
    """Replaces every attention layer of a model by one that has a Lipschitz constant.

    Known are torch.nn.TransformerEncoder (and its layers alone), and GPT-2, BERT, ViT and Llama of transformers with
    any head. If an attention layer of the model cannot be replaced, the error names it and the model is left as it was.

    **Pretrained weights do not carry over.** The new layers compute another function, so that the model must learn
    again; docs/python-lipschitz.md has figures of what fine-tuning recovers.

    - Tied L2 attention has one matrix W_Q for queries and keys, and values x A_h W_V with A_h = W_Q W_Qᵀ/√k: W_K is
      dropped. b_Q and b_K cancel in its distances. b_V and b_O shift the output, and b_V W_O + b_O is its only bias.
      Cosine and sigmoid attention keep W_K; of the biases they keep b_O alone.
    - Masks are the model's own: causal, padding, and given masks of four axes. The output at a token that is padding
      is the bias.
    - Rotary positions (Llama) turn the values as well: see :class:`RotaryL2SelfAttention`. Kind l2 alone has them.
    - Grouped heads (Llama): each head has keys of its own, which are its queries, and begins with its group's values.
    - Caches of keys and values are refused. ``config.use_cache`` becomes False; ``generate`` works without one.
    - Attention weights are not recorded: ``output_attentions`` is refused, or (GPT-2) gives an empty tuple.

    Args:
        model: Changed in place.
        kind: "l2", "contractive-l2", "cosine" or "sigmoid".
        weights: What the new layers begin with: "new", random numbers, from which models learnt faster in our
            trials; or "kept", the model's own W_Q, W_V and W_O (and W_K where the kind has one).
        options: Of the new modules, such as ``length`` of "contractive-l2" or ``tau`` of "cosine".

    Returns:
        The new modules by their paths; as text, what was done and what is lost.

    Raises:
        InputError: For a model without attention, or with attention that cannot be replaced: with its path, and the
            setting that is in the way.
    """
    if not isinstance(model, nn.Module):
        raise InputError(f"model: expected a torch.nn.Module, got {type(model).__name__}")
    if kind not in _KINDS:
        raise InputError(f"kind: {kind!r}; expected {', '.join(_KINDS)}")
    if weights not in ("kept", "new"):
        raise InputError(f"weights: {weights!r}; expected kept or new")
    places = _places(model)
    if not places:
        raise InputError(
            f"model: this {type(model).__name__} has no attention of a torch.nn.TransformerEncoder, nor of a GPT-2, "
            "BERT, ViT or Llama of transformers"
        )
    made = {place.path: _made(place, kind, weights, options) for place in places}  # all, before one is put in
    for place in places:
        place.put(made[place.path])
    if any(place.of_transformers for place in places):
        from lipscope.torch.transformers_attention import settle

        settle(model, {"kind": kind, "weights": weights, **options})
    for module in model.modules():
        if isinstance(module, nn.TransformerEncoder):
            # in evaluation mode it would hand its layers a nested tensor in place of padding, for torch's own kernel
            setattr(module, "use_nested_tensor", False)
    return Replaced(kind, weights, made)


@dataclass(frozen=True)
class Place:
    """An attention layer that can be replaced, its weights as torch.nn.Linear has them, and how to put in a new one."""

    path: str
    heads: int
    weights: dict[str, torch.Tensor]
    """q, k, v and o."""
    value_bias: torch.Tensor | None
    output_bias: torch.Tensor | None
    put: Callable[[SelfAttention], None]
    dropout: float = 0.0
    batch_first: bool = True
    rotary: bool = False
    of_transformers: bool = True


def _made(place: Place, kind: str, weights: str, options: dict[str, Any]) -> SelfAttention:
    if place.rotary and kind != "l2":
        raise InputError(f"{place.path}: rotary positions, which kind {kind} does not have; kind l2 has")
    width = place.weights["q"].shape[1]
    for weight in (place.weights[name] for name in "qkv"):
        if weight.shape[0] != width:
            raise InputError(
                f"{place.path}: head_dim {weight.shape[0] // place.heads}: {place.heads} heads make {weight.shape[0]} "
                f"features, and tokens have {width}"
            )
    bias = _bias(place, kind)
    make: Any = RotaryL2SelfAttention if place.rotary else _KINDS[kind]
    module: SelfAttention = make(
        width,
        place.heads,
        dropout=place.dropout,
        bias=bias is not None,
        batch_first=place.batch_first,
        device=place.weights["q"].device,
        dtype=place.weights["q"].dtype,
        **options,
    )
    if weights == "kept":
        own = dict(module.named_parameters())  # tied attention has no keys
        with torch.no_grad():
            for name, weight in place.weights.items():
                if f"{_NAMES[name]}_weight" in own:
                    own[f"{_NAMES[name]}_weight"].copy_(weight)
            if bias is not None:
                own["out_proj_bias"].copy_(bias)
    return module


def _bias(place: Place, kind: str) -> torch.Tensor | None:
    """What biases add to the output. Rows of softmax weights sum to one, so that b_V arrives there as b_V W_O."""
    if not kind.endswith("l2") or place.value_bias is None:
        return place.output_bias
    shift = place.weights["o"] @ place.value_bias
    return shift if place.output_bias is None else shift + place.output_bias


def _places(model: nn.Module) -> list[Place]:
    """All attention layers of the model. InputError for one that cannot be replaced."""
    places: list[Place] = []
    known: list[str] = []  # paths of attention that is dealt with, or has been replaced before
    for path, module in model.named_modules():
        place = None
        if isinstance(module, SelfAttention):
            known.append(path)
        elif isinstance(module, nn.TransformerEncoderLayer) and not isinstance(module.self_attn, SelfAttention):
            place = _encoder_place(f"{path}.self_attn".lstrip("."), module)
        elif type(module).__module__.startswith("transformers.models."):
            from lipscope.torch.transformers_attention import place_of

            place = place_of(model, path, module)
        if place is not None:
            places.append(place)
            known.append(place.path)
    for path, module in model.named_modules():
        named = isinstance(module, nn.MultiheadAttention) or "attention" in type(module).__name__.lower()
        if named and any(True for _ in module.parameters()) and not any(_one_holds_the_other(path, k) for k in known):
            raise InputError(
                f"{path or 'model'}: {type(module).__name__} is not known here; known are "
                "torch.nn.TransformerEncoderLayer, and GPT-2, BERT, ViT and Llama of transformers"
            )
    return places


def _one_holds_the_other(a: str, b: str) -> bool:
    return f"{a}.".startswith(f"{b}.") or f"{b}.".startswith(f"{a}.") or "" in (a, b)


def _encoder_place(path: str, layer: nn.TransformerEncoderLayer) -> Place:
    old = layer.self_attn
    if not isinstance(old, nn.MultiheadAttention):
        raise InputError(f"{path}: {type(old).__name__} is no torch.nn.MultiheadAttention")
    if not old._qkv_same_embed_dim:
        raise InputError(f"{path}: kdim {old.kdim} and vdim {old.vdim} differ from embed_dim {old.embed_dim}")
    if old.bias_k is not None or old.bias_v is not None:
        raise InputError(f"{path}: add_bias_kv adds a token that is no input")
    if old.add_zero_attn:
        raise InputError(f"{path}: add_zero_attn adds a token that is no input")
    q, k, v = old.in_proj_weight.detach().chunk(3)

    def put(new: SelfAttention) -> None:
        layer.self_attn = new.train(old.training)  # type: ignore[assignment]

    return Place(
        path,
        old.num_heads,
        {"q": q, "k": k, "v": v, "o": old.out_proj.weight.detach()},
        None if old.in_proj_bias is None else old.in_proj_bias.detach().chunk(3)[2],
        None if old.out_proj.bias is None else old.out_proj.bias.detach(),
        put,
        dropout=old.dropout,
        batch_first=old.batch_first,
        of_transformers=False,
    )
