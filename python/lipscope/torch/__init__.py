"""lipscope for PyTorch: the constant of any function, and of every layer of a model in memory."""

from lipscope.torch.function import local_constant
from lipscope.torch.model import audit

__all__ = ["audit", "local_constant"]
