"""lipscope for PyTorch: the constant of any function and of a model's layers, and attention whose constant is known."""

from lipscope.torch.attention import cosine_attention, l2_attention, sigmoid_attention
from lipscope.torch.bound import Constant, Inputs, lipschitz_bound, proved_bound
from lipscope.torch.capped import CappedLinear, Residual
from lipscope.torch.function import local_constant
from lipscope.torch.invertible import InvertibleResidual
from lipscope.torch.model import audit
from lipscope.torch.penalties import attention_map_penalty, local_penalty
from lipscope.torch.promise import Promise, keep_promise
from lipscope.torch.self_attention import (
    ContractiveL2SelfAttention,
    CosineSelfAttention,
    L2SelfAttention,
    SigmoidSelfAttention,
)

__all__ = [
    "CappedLinear",
    "Constant",
    "ContractiveL2SelfAttention",
    "CosineSelfAttention",
    "Inputs",
    "InvertibleResidual",
    "L2SelfAttention",
    "Promise",
    "Residual",
    "SigmoidSelfAttention",
    "attention_map_penalty",
    "audit",
    "cosine_attention",
    "keep_promise",
    "l2_attention",
    "lipschitz_bound",
    "local_constant",
    "local_penalty",
    "proved_bound",
    "sigmoid_attention",
]
