"""lipscope for PyTorch: the constant of any function, of every layer of a model in memory, and attention that has one."""

from lipscope.torch.attention import cosine_attention, l2_attention, sigmoid_attention
from lipscope.torch.function import local_constant
from lipscope.torch.model import audit
from lipscope.torch.self_attention import CosineSelfAttention, L2SelfAttention, SigmoidSelfAttention

__all__ = [
    "CosineSelfAttention",
    "L2SelfAttention",
    "SigmoidSelfAttention",
    "audit",
    "cosine_attention",
    "l2_attention",
    "local_constant",
    "sigmoid_attention",
]
