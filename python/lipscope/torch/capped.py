"""A linear layer whose norm cannot exceed a cap, and a residual connection."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from lipscope.errors import InputError
from lipscope.torch.arithmetic import Differentiable
from lipscope.torch.bound import Constant, Inputs, constant_of, linear_constant, residual


class CappedLinear(nn.Module):
    """torch.nn.Linear with ‖W‖₂ ≤ cap at all times: x Wᵀ min(1, cap/‖W‖₂) + b.

    The norm is the largest singular value itself, at every call, and its gradient is that of the quotient. A power
    iteration, as in torch.nn.utils.parametrizations.spectral_norm, comes from below and lets the norm exceed the cap.
    Parameters have the names and shapes of torch.nn.Linear. Without training, :meth:`to_linear` has no such cost.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: torch.dtype | None = None,
        *,
        cap: float = 1.0,
    ) -> None:
        super().__init__()
        if not 0.0 < cap < math.inf:
            raise InputError(f"cap: {cap}; expected a number above 0")
        plain = nn.Linear(in_features, out_features, bias, device, dtype)
        self.in_features, self.out_features, self.cap = in_features, out_features, cap
        self.weight, self.bias = plain.weight, plain.bias

    def capped_weight(self) -> torch.Tensor:
        """The weight that is used."""
        norm = Differentiable().norm(self.weight)
        # room for the rounding of the norm and of the product, and for a proof to come from above
        lost = 32.0 * torch.finfo(norm.dtype).eps + 2.0 * torch.finfo(self.weight.dtype).eps
        room = 1.0 - 1e-9 - lost * math.sqrt(min(self.weight.shape))
        factor = torch.where(norm > self.cap * room, self.cap * room / norm, torch.ones_like(norm))
        return factor.to(self.weight.dtype) * self.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, self.capped_weight(), self.bias)

    def constant(self, over: Inputs) -> Constant:
        """What :func:`lipscope.torch.lipschitz_bound` asks for."""
        return linear_constant(self.capped_weight(), self.bias, over)

    def to_linear(self) -> nn.Linear:
        """The same layer with the capped weight as it is now."""
        made: dict[str, Any] = {"device": self.weight.device, "dtype": self.weight.dtype}
        plain = nn.Linear(self.in_features, self.out_features, self.bias is not None, **made)
        with torch.no_grad():
            plain.weight.copy_(self.capped_weight())
            if self.bias is not None:
                plain.bias.copy_(self.bias)
        return plain

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}, bias={self.bias is not None}, cap={self.cap}"


class Residual(nn.Module):
    """x + f(x); of a branch that returns several values, as attention does, the first is meant.

    Further arguments, such as masks, go to the branch.
    """

    def __init__(self, branch: nn.Module) -> None:
        super().__init__()
        self.branch = branch

    def forward(self, x: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        return x + first_of(self.branch(x, *args, **kwargs))

    def constant(self, over: Inputs) -> Constant:
        """What :func:`lipscope.torch.lipschitz_bound` asks for."""
        return residual(over, constant_of(self.branch, over.inside("branch")))


def first_of(output: Any) -> torch.Tensor:
    """The tensor, or the first of several."""
    first: torch.Tensor = output[0] if isinstance(output, (tuple, list)) else output
    return first
