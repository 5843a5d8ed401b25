"""Lipschitz attention inside models of transformers: GPT-2, BERT, ViT and Llama."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import nn
from transformers.masking_utils import sdpa_mask

from lipscope.errors import InputError
from lipscope.torch.bound import Constant, Inputs, constant_of
from lipscope.torch.replace import Place, replace_attention
from lipscope.torch.rotary import RotaryL2SelfAttention
from lipscope.torch.self_attention import SelfAttention

# The name by which a model asks transformers for attention and masks. Under a name that has no entry in the second
# table transformers makes no mask at all: tokens would see those after them, and padding.
_NAME = "lipscope"


def _not_replaced(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
    raise InputError(f"attn_implementation: {_NAME} is for replaced layers, and this {type(module).__name__} is none")


def _whole_mask(**request: Any) -> torch.Tensor | None:
    """True where token i sees token j, [samples, 1, n, n]; never left out because it is merely causal."""
    return sdpa_mask(**{**request, "allow_is_causal_skip": False})  # type: ignore[no-any-return]


transformers.AttentionInterface.register(_NAME, _not_replaced)
transformers.AttentionMaskInterface.register(_NAME, _whole_mask)


class TransformersAttention(nn.Module):
    """A SelfAttention with the arguments, masks and return value of an attention layer of transformers."""

    def __init__(self, attention: SelfAttention, *, causal: bool, config: Any, dropout: float = 0.0) -> None:
        super().__init__()
        self.attention = attention
        self.is_causal = causal
        self.config = config
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        hidden_states: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        past_key_values: Any = None,
        encoder_hidden_states: torch.Tensor | None = None,
        position_embeddings: tuple[torch.Tensor, torch.Tensor] | None = None,
        output_attentions: bool | None = None,
        **_: Any,
    ) -> tuple[torch.Tensor, None]:
        if past_key_values is not None:
            raise InputError(
                "past_key_values: replaced attention has no cache of keys and values; call the model with "
                "use_cache=False"
            )
        if encoder_hidden_states is not None:
            raise InputError("encoder_hidden_states: replaced attention is attention of a sequence to itself")
        if output_attentions:
            raise InputError("output_attentions: replaced attention does not record its weights; call its .attention")
        masks = self._masks(attention_mask, hidden_states)
        if isinstance(self.attention, RotaryL2SelfAttention):
            if position_embeddings is None:
                raise InputError("position_embeddings: None; expected the cosines and sines of the positions")
            y, _weights = self.attention(hidden_states, positions=position_embeddings, **masks)
        else:
            y, _weights = self.attention(hidden_states, need_weights=False, **masks)
        return self.dropout(y), None

    def _masks(self, mask: torch.Tensor | None, x: torch.Tensor) -> dict[str, torch.Tensor]:
        """What the model's mask hides, as masks of a SelfAttention.

        A token that does not see itself is padding. Its row, which nobody reads, is cleared.
        """
        samples, n = x.shape[0], x.shape[1]
        if mask is None:
            if self.is_causal and getattr(self.config, "is_causal", True) and n > 1:
                raise InputError(
                    f"attention_mask: None, and this model is causal: transformers made no mask under the "
                    f"attn_implementation {self.config._attn_implementation!r}; set it to {_NAME!r}"
                )
            return {}
        if mask.dim() != 4 or mask.shape[0] not in (1, samples) or list(mask.shape[1:]) != [1, n, n]:
            raise InputError(
                f"attention_mask: shape {list(mask.shape)} in a layer; expected [{samples}, 1, {n}, {n}] "
                f"(attn_implementation is {self.config._attn_implementation!r})"
            )
        own = mask.diagonal(dim1=-2, dim2=-1)[:, 0]
        if mask.dtype == torch.bool:  # True sees, in transformers
            padding, hidden = ~own, ~mask
        else:
            padding, hidden = own <= torch.finfo(mask.dtype).min / 2, mask
        return {
            "attn_mask": hidden.masked_fill(padding[:, None, :, None], 0),
            "key_padding_mask": padding.expand(samples, n),
        }

    def constant(self, over: Inputs) -> Constant:
        """What :func:`lipscope.torch.lipschitz_bound` asks for."""
        return constant_of(self.attention, over.inside("attention"))


def from_pretrained(model_class: Any, folder: str | Path, **options: Any) -> Any:
    """A model whose attention was replaced, from where its ``save_pretrained`` wrote it.

    ``model_class.from_pretrained`` itself would make the attention that the class has, and report the weights of the
    replaced one as unexpected. ``options`` are those of ``from_pretrained``.
    """
    if not isinstance(model_class, type) or not issubclass(model_class, transformers.PreTrainedModel):
        raise InputError(f"model_class: {model_class!r}; expected a model class of transformers (GPT2LMHeadModel, …)")
    own: Any = model_class
    found = getattr(options.get("config") or own.config_class.from_pretrained(folder), "lipscope_attention", None)
    if not isinstance(found, dict):
        raise InputError(f"{folder}: config.json has no lipscope_attention; its attention was not replaced")
    how: dict[str, Any] = found

    class Replaced(own):  # type: ignore[misc]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            replace_attention(self, **how)

    model = Replaced.from_pretrained(folder, **options)
    model.__class__ = own  # which can be pickled
    return model


def settle(model: nn.Module, how: dict[str, Any]) -> None:
    """What is not in the layers: no caches, and in the config how to replace attention again."""
    for module in model.modules():
        if isinstance(module, TransformersAttention):
            module.config._attn_implementation = _NAME
            module.config.lipscope_attention = how
            if hasattr(module.config, "use_cache"):
                module.config.use_cache = False
        if getattr(module, "generation_config", None) is not None:
            module.generation_config.use_cache = False  # type: ignore[union-attr]


def place_of(model: nn.Module, path: str, module: nn.Module) -> Place | None:
    """The layer as one that can be replaced; None for what is none. InputError, with the setting, for the rest."""
    family = type(module).__module__.split(".")[2]
    read = _FAMILIES.get((family, type(module).__name__))
    if read is None:
        return None
    if path == "":
        raise InputError(f"model: a {type(module).__name__} alone; expected the model that it is part of")
    parent, _, name = path.rpartition(".")

    def put(new: nn.Module) -> None:
        setattr(model.get_submodule(parent), name, new.train(module.training))

    return read(path, module, put)


def _gpt2(path: str, old: Any, put: Callable[[nn.Module], None]) -> Place:
    if old.is_cross_attention:
        raise InputError(f"{path}: add_cross_attention: attention to another sequence is not replaced")
    for setting, usual in (("scale_attn_weights", True), ("scale_attn_by_inverse_layer_idx", False)):
        if getattr(old, setting) != usual:
            raise InputError(f"{path}: {setting}={not usual} scales dot products; expected {usual}")
    q, k, v = old.c_attn.weight.detach().T.chunk(3)  # Conv1D has [in, out]
    return Place(
        path,
        old.num_heads,
        {"q": q, "k": k, "v": v, "o": old.c_proj.weight.detach().T},
        old.c_attn.bias.detach().chunk(3)[2],
        old.c_proj.bias.detach(),
        lambda new: put(TransformersAttention(new, causal=True, config=old.config, dropout=old.resid_dropout.p)),
        dropout=old.attn_dropout.p,
    )


def _bert(path: str, old: Any, put: Callable[[nn.Module], None]) -> Place:
    if old.is_cross_attention:
        raise InputError(f"{path}: add_cross_attention: attention to another sequence is not replaced")
    inner, dense = old.self, old.output.dense

    def put_inside(new: SelfAttention) -> None:
        old.self = TransformersAttention(new, causal=inner.is_causal, config=inner.config).train(inner.training)
        old.output.dense = nn.Identity()  # the new attention has its own W_O; dropout, residual and norm stay here

    return Place(
        f"{path}.self",
        inner.num_attention_heads,
        _weights(inner.query, inner.key, inner.value, dense),
        _bias(inner.value),
        _bias(dense),
        put_inside,
        dropout=inner.dropout.p,
    )


def _vit(path: str, old: Any, put: Callable[[nn.Module], None]) -> Place:
    return Place(
        path,
        old.num_attention_heads,
        _weights(old.q_proj, old.k_proj, old.v_proj, old.o_proj),
        _bias(old.v_proj),
        _bias(old.o_proj),
        lambda new: put(TransformersAttention(new, causal=False, config=old.config)),
        dropout=old.attention_dropout,
    )


def _llama(path: str, old: Any, put: Callable[[nn.Module], None]) -> Place:
    scaled = old.config.rope_parameters
    if scaled.get("rope_type", "default") in _STRETCHING:
        raise InputError(f"{path}: rope_type {scaled['rope_type']} stretches features beside turning them")
    width, groups = old.head_dim, old.num_key_value_groups

    def for_each_head(rows: torch.Tensor) -> torch.Tensor:
        of_a_head = rows.detach().reshape(-1, width, *rows.shape[1:])
        return of_a_head.repeat_interleave(groups, 0).flatten(0, 1)

    return Place(
        path,
        old.config.num_attention_heads,
        {
            "q": old.q_proj.weight.detach(),
            "k": for_each_head(old.k_proj.weight),
            "v": for_each_head(old.v_proj.weight),
            "o": old.o_proj.weight.detach(),
        },
        None if old.v_proj.bias is None else for_each_head(old.v_proj.bias),
        _bias(old.o_proj),
        lambda new: put(TransformersAttention(new, causal=True, config=old.config)),
        dropout=old.attention_dropout,
        rotary=True,
    )


def _weights(*linears: nn.Linear) -> dict[str, torch.Tensor]:
    return {name: linear.weight.detach() for name, linear in zip("qkvo", linears)}


def _bias(linear: nn.Linear) -> torch.Tensor | None:
    return None if linear.bias is None else linear.bias.detach()


_STRETCHING = ("yarn", "longrope")  # their cosines and sines are multiplied by a factor
_FAMILIES: dict[tuple[str, str], Callable[[str, Any, Callable[[nn.Module], None]], Place]] = {
    ("gpt2", "GPT2Attention"): _gpt2,
    ("bert", "BertAttention"): _bert,
    ("vit", "ViTAttention"): _vit,
    ("llama", "LlamaAttention"): _llama,
}
