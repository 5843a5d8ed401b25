"""What can be added to a loss so that a model amplifies less; :func:`lipschitz_bound` is one more."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from lipscope.errors import InputError
from lipscope.records import Record
from lipscope.torch.capped import first_of
from lipscope.torch.function import Function, local_constant
from lipscope.torch.plain_kernels import plain_kernels


def local_penalty(
    f: Function,
    x: torch.Tensor,
    *,
    norm: str = "2",
    direction: torch.Tensor | None = None,
    tolerance: float = 1e-2,
    max_steps: int = 30,
    seed: int = 0,
) -> torch.Tensor:
    """The local constant of f at x, differentiable by what f is made of: ‖J v‖/‖v‖ for its witness v.

    v is the direction that :func:`local_constant` finds, held fixed, or the one that is given: its gradient is that of
    the constant itself where v is the direction that is amplified most. The constant of a batch of independent inputs
    is the largest of them. A module is measured in evaluation mode; of several outputs the first is meant.
    """
    keep = torch.is_grad_enabled()
    with _evaluation(f):
        if direction is None:
            options: dict[str, Any] = {"norm": norm, "tolerance": tolerance, "max_steps": max_steps, "seed": seed}
            first: Any = _First(f) if isinstance(f, nn.Module) else lambda at: first_of(f(at))
            found = local_constant(first, x, **options)
            assert isinstance(found, Record)
            witness: Any = found.direction
            direction = witness
        if direction is None or direction.shape != x.shape:
            raise InputError(f"direction: expected a tensor of shape {list(x.shape)}")
        v = direction.detach().to(x)
        with torch.enable_grad(), plain_kernels():
            at = x.detach().requires_grad_()
            y = first_of(f(at))
            # Jᵀu is linear in u, and its derivative by u, at v, is J v
            u = torch.zeros_like(y, requires_grad=True)
            pulled = torch.autograd.grad(y, at, u, create_graph=True)[0]
            pushed = torch.autograd.grad(pulled, u, v, create_graph=keep)[0]
            return _size(pushed, norm) / _size(v, norm)


def attention_map_penalty(weights: torch.Tensor) -> torch.Tensor:
    """How far the attention maps [..., n, n] are from where softmax reacts least [Yudin25]; between 0 and ½.

    max_i g₁(P_i) of each map, and the mean over maps: g₁(p) = p₍₁₎(1 − p₍₁₎ + p₍₂₎), with p₍₁₎ ≥ p₍₂₎ the largest
    entries of a row, bounds the norm of softmax's Jacobian there. It is the one factor of the paper's bound on
    ‖J‖₂, ‖V‖(‖P‖₂ + 2‖X‖₂²‖A‖₂ max_i g₁(P_i)), that the scores alone decide. Modules return the maps
    with ``need_weights=True, average_attn_weights=False``.
    """
    if not isinstance(weights, torch.Tensor) or weights.dim() < 2 or not weights.is_floating_point():
        raise InputError("weights: expected attention maps, [..., n, n]")
    largest = weights.topk(min(2, weights.shape[-1]), -1).values
    first = largest[..., 0]
    second = largest[..., 1] if largest.shape[-1] > 1 else torch.zeros_like(first)
    found: torch.Tensor = (first * (1.0 - first + second)).amax(-1).mean()
    return found


class _First(nn.Module):
    """The first of what a module returns."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner
        self.training = inner.training

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return first_of(self.inner(x))


def _size(x: torch.Tensor, norm: str) -> torch.Tensor:
    if norm == "inf":
        return x.abs().max()
    return x.square().sum(-1).sqrt().max() if norm == "token" else x.square().sum().sqrt()


@contextlib.contextmanager
def _evaluation(f: Any) -> Iterator[None]:
    """Inside, a module and its parts are in evaluation mode."""
    training = [part for part in f.modules() if part.training] if isinstance(f, nn.Module) else []
    try:
        for part in training:
            part.training = False
        yield
    finally:
        for part in training:
            part.training = True
