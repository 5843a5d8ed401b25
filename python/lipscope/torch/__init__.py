"""lipscope for PyTorch: the constant of any function and of a model's layers, and attention whose constant is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lipscope.torch.attention import cosine_attention, l2_attention, sigmoid_attention
from lipscope.torch.bound import Constant, Inputs, lipschitz_bound, proved_bound
from lipscope.torch.capped import CappedLinear, Residual
from lipscope.torch.function import local_constant
from lipscope.torch.invertible import InvertibleResidual
from lipscope.torch.model import audit
from lipscope.torch.penalties import attention_map_penalty, local_penalty
from lipscope.torch.promise import Promise, keep_promise
from lipscope.torch.replace import Replaced, replace_attention
from lipscope.torch.rotary import RotaryL2SelfAttention
from lipscope.torch.self_attention import (
    ContractiveL2SelfAttention,
    CosineSelfAttention,
    L2SelfAttention,
    SigmoidSelfAttention,
)
from lipscope.torch.trained import TrainedModel


def from_pretrained(model_class: Any, folder: str | Path, **options: Any) -> Any:
    """A model of transformers whose attention was replaced, from where its ``save_pretrained`` wrote it.

    ``model_class.from_pretrained`` would make the attention that the class has by itself, and report the weights of the
    new attention as unexpected. ``options`` are those of ``from_pretrained``.

    Raises:
        InputError: For a folder whose model has its own attention.
    """
    from lipscope.torch.transformers_attention import from_pretrained as load  # needs transformers

    return load(model_class, folder, **options)


__all__ = [
    "CappedLinear",
    "Constant",
    "ContractiveL2SelfAttention",
    "CosineSelfAttention",
    "Inputs",
    "InvertibleResidual",
    "L2SelfAttention",
    "Promise",
    "Replaced",
    "Residual",
    "RotaryL2SelfAttention",
    "SigmoidSelfAttention",
    "TrainedModel",
    "attention_map_penalty",
    "audit",
    "cosine_attention",
    "from_pretrained",
    "keep_promise",
    "l2_attention",
    "lipschitz_bound",
    "local_constant",
    "local_penalty",
    "proved_bound",
    "replace_attention",
    "sigmoid_attention",
]
