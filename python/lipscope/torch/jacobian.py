"""The Jacobian of a torch function at a point, known by its products with vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy.typing as npt
import torch

from lipscope.errors import InputError, RunError
from lipscope.torch.plain_kernels import plain_kernels
from lipscope.torch.widened import short_name


class Jacobian:
    """J = f'(x), acting on flattened tensors, by two graphs that are built once.

    Jᵀu is the backward pass, retained. It is linear in u, so that its own backward pass at v is J v:
    with g(u) = Jᵀu, ∂⟨g(u), v⟩/∂u = J v. This needs no forward mode, which many functions lack.
    """

    def __init__(self, f: Callable[[torch.Tensor], Any], x: torch.Tensor) -> None:
        self._x = x.detach().clone().requires_grad_()
        with torch.enable_grad(), plain_kernels():
            self._y = checked_output(f(self._x), self._x)
            self._u = torch.zeros_like(self._y, requires_grad=True)
            self._g = self._pull(self._u, create_graph=True)
        self.value = self._y.detach()
        self.rows, self.cols = self._y.numel(), self._x.numel()

    @property
    def dtype(self) -> torch.dtype:
        return self._x.dtype

    def apply(self, v: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """J v"""
        return self._array(self._push(self._tensor(v, self._x)))

    def apply_adjoint(self, u: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Jᵀ u"""
        return self._array(self._pull(self._tensor(u, self._y)))

    def require_adjoint(self, seed: int) -> npt.NDArray[Any]:
        """Jᵀu for a random u; RunError unless ⟨J v, u⟩ = ⟨v, Jᵀu⟩ at a random v, up to rounding.

        A function in f whose derivative has no derivative is a constant to the second backward pass:
        torch then leaves a part out of J v without a word. ⟨J v, u⟩ is by itself only a √rows-th of
        |J v| |u|, so that little more than rounding is allowed.
        """
        numbers = torch.Generator().manual_seed(seed)
        v, u = (torch.randn(t.shape, generator=numbers, dtype=t.dtype).to(t.device) for t in (self._x, self._y))
        image, pulled = self._push(v), self._pull(u)
        forth, back = _dot(image, u), _dot(pulled, v)
        size = max(_dot(image, image) * _dot(u, u), _dot(pulled, pulled) * _dot(v, v)) ** 0.5
        if not abs(forth - back) <= (1e-9 if self.dtype == torch.float64 else 1e-5) * size:
            raise RunError(
                f"f cannot be differentiated twice, as J v requires: <J v, u> = {forth:.9g} and "
                f"<v, J'u> = {back:.9g} at random v and u"
            )
        return self._array(pulled)

    def _push(self, v: torch.Tensor) -> torch.Tensor:
        if not self._g.requires_grad:  # Jᵀu does not depend on u: J = 0, or require_adjoint fails
            return torch.zeros_like(self._y)
        try:
            (image,) = torch.autograd.grad(self._g, self._u, v, retain_graph=True, allow_unused=True)
        except RuntimeError as error:
            raise RunError(f"f cannot be differentiated twice, as J v requires: {error}") from error
        return torch.zeros_like(self._y) if image is None else image

    def _pull(self, u: torch.Tensor, create_graph: bool = False) -> torch.Tensor:
        (pulled,) = torch.autograd.grad(
            self._y, self._x, u, create_graph=create_graph, retain_graph=True, allow_unused=True
        )
        if pulled is None:
            raise InputError(
                f"f: its output of shape {shape_of(self._y)} does not depend on x of shape "
                f"{shape_of(self._x)} by anything that torch can differentiate"
            )
        return pulled

    @staticmethod
    def _tensor(v: npt.NDArray[Any], like: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(v).to(like.device).view(like.shape)  # v is a new array in every call

    @staticmethod
    def _array(t: torch.Tensor) -> npt.NDArray[Any]:
        array: npt.NDArray[Any] = t.detach().reshape(-1).cpu().numpy()
        return array


def _dot(a: torch.Tensor, b: torch.Tensor) -> float:
    return float(torch.dot(a.reshape(-1), b.reshape(-1)))


def shape_of(tensor: torch.Tensor) -> str:
    return "[" + ", ".join(str(s) for s in tensor.shape) + "]"


def checked_output(y: Any, x: torch.Tensor) -> torch.Tensor:
    """The output of f, if it is one real tensor that depends on x; InputError otherwise."""
    if not isinstance(y, torch.Tensor):
        what = type(y).__name__
        if isinstance(y, (tuple, list)):
            what += f" of {len(y)} values"
        elif hasattr(y, "keys"):
            what += f" with {', '.join(repr(k) for k in y.keys())}"
        raise InputError(
            f"f: returns a {what} and not one tensor; say which value is meant by output=…, for "
            "example output=0, or measure a function that returns it"
        )
    if y.is_complex():
        raise InputError(f"f: returns {y.dtype}; only real functions have a constant here")
    if not y.is_floating_point():
        raise InputError(f"f: returns {short_name(y.dtype)} values, which have no derivative")
    if y.numel() == 0:
        raise InputError(f"f: returns an empty tensor of shape {shape_of(y)}")
    if not y.requires_grad:
        raise InputError(
            f"f: its output of shape {shape_of(y)} does not depend on x of shape {shape_of(x)} by "
            "anything that torch can differentiate (a detach(), an argmax, NumPy in between?)"
        )
    bad = int((~torch.isfinite(y.detach())).sum())
    if bad:
        raise InputError(f"f: {bad} of the {y.numel()} numbers of its output are not finite")
    checked: torch.Tensor = y.to(x.dtype)
    return checked
