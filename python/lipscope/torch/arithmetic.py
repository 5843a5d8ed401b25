"""The two kinds of numbers that a bound is computed in: tensors that carry gradients, and numbers that are proved.

A bound is written once, by the operations here, + and *. With :class:`Differentiable` it is a tensor, rounded as torch
rounds. With :class:`Proved` every norm is proved and every operation rounds up, in the C++ core.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import reduce
from typing import Any

import torch

from lipscope import _core
from lipscope.errors import RunError

Number = Any
"""A tensor, or a Magnitude; a plain number from 0 on may stand in its place."""

ABOVE = 1.0 + 2.0**-44
"""More than a few operations on plain numbers can have lost by rounding."""


class Differentiable:
    """Tensors without axes on the device of the weights, in f32 or f64; plain numbers where no weight is in them."""

    proves = False

    def number(self, x: Number) -> Number:
        """A plain number as one of these."""
        return x

    def norm(self, w: torch.Tensor) -> Number:
        """‖W‖₂"""
        return torch.linalg.matrix_norm(_wide(w), 2)

    def product_norm(self, x: torch.Tensor, y: torch.Tensor) -> Number:
        """‖X Y‖₂, where what is between the two is narrow."""
        # by the vector v that is stretched most: |X Y v| has the value and the gradient of ‖X Y‖. With X = QR it is
        # found from R Y, a narrow matrix.
        x, y = _wide(x), _wide(y)
        with torch.no_grad():
            narrow = torch.linalg.qr(x)[1] @ y if x.shape[0] > x.shape[1] else x @ y
            v = torch.linalg.svd(narrow, full_matrices=False)[2][0]
        return self.length(x @ (y @ v))

    def row_sum(self, w: torch.Tensor) -> Number:
        """max_i Σ_j |W_ij|: the norm of y = W x by largest entries."""
        return _wide(w).abs().sum(1).max()

    def length(self, v: torch.Tensor) -> Number:
        """|v|₂"""
        return torch.linalg.vector_norm(_wide(v))

    def largest_entry(self, v: torch.Tensor) -> Number:
        """max_i |v_i|"""
        return _wide(v).abs().max()

    def root(self, a: Number) -> Number:
        """√a"""
        return a.sqrt() if isinstance(a, torch.Tensor) else math.sqrt(a)

    def smaller(self, a: Number, b: Number) -> Number:
        """Of two bounds on the same thing."""
        if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
            return torch.minimum(a, b)
        if isinstance(b, torch.Tensor):
            a, b = b, a
        return a.clamp(max=b) if isinstance(a, torch.Tensor) else min(a, b)

    def largest(self, numbers: Iterable[Number]) -> Number:
        """The largest of them."""
        return reduce(torch.maximum, numbers)

    def phi_inverse(self, n: int) -> float:
        """p with p e^{p+1} = n − 1: attention/l2.h."""
        # Newton's method on ln p + p + 1 = ln(n − 1), which is concave: from the left it does not overshoot. In plain
        # arithmetic, so that torch.compile can look through it.
        if n == 1:
            return 0.0
        goal = math.log(n - 1.0) - 1.0
        p = math.exp(min(goal, 0.0)) / 2.0
        for _ in range(40):
            p += (goal - p - math.log(p)) * p / (1.0 + p)
        return p

    def largest_column_sum(self, spread: Number, n: int, mask: str) -> Number:
        """Of n × n attention weights whose logits lie within 2 spread of one another: theory/column_sums.h."""
        if mask == "any":
            return float(n)
        if not isinstance(spread, torch.Tensor):
            return _core.largest_column_sum(spread, n, mask).value
        # where the exponential underflows the sum is n
        weight = torch.exp(-2.0 * spread).clamp(min=torch.finfo(spread.dtype).tiny)
        others = n - 1
        return n / (1.0 + others * weight) if mask == "none" else 1.0 + torch.log1p(others * weight) / weight

    def sigmoid_ball(self, score: Number, value: Number, radius: Number, n: int) -> Number:
        """Of a sigmoid head over a ball: theory/ramapuram24.h."""
        top = score * radius * radius - math.log(n)
        sigma = torch.sigmoid(top)
        slope = torch.where(top >= 0.0, torch.full_like(top, 0.25), sigma * (1.0 - sigma))
        return n * value * (sigma + 2.0 * score * radius * radius * slope)

    def l2_path_factor(self, q: torch.Tensor, v: torch.Tensor, o: torch.Tensor) -> Number:
        """k^{-1/2} ‖[t_h W_Q,h]‖ ‖[U_h/t_h]‖, U_h = W_Q,hᵀ W_V,h W_O,h: theory/l2_kernel.h."""
        q, v, o = _wide(q), _wide(v), _wide(o)
        u = q @ v.transpose(1, 2) @ o
        # every t_h > 0 is allowed; this one makes the two Frobenius norms of a head alike
        path, query = u.square().sum((1, 2), keepdim=True), q.square().sum((1, 2), keepdim=True)
        one = torch.ones_like(path)
        some = (path > 0) & (query > 0)
        t = (torch.where(some, path, one) / torch.where(some, query, one)) ** 0.25
        return self.norm((t * q).flatten(0, 1)) * self.norm((u / t).flatten(0, 1)) / math.sqrt(q.shape[1])


class Proved:
    """Magnitudes of the C++ core; weights are read in f64, which is exact for all narrower types."""

    proves = True

    def number(self, x: Number) -> Number:
        return x if isinstance(x, _core.Magnitude) else _core.Magnitude(float(x))

    def norm(self, w: torch.Tensor) -> Number:
        return self.number(_core.weight_norm_above(exact(w)))

    def product_norm(self, x: torch.Tensor, y: torch.Tensor) -> Number:
        return self.number(_core.product_norm_above(exact(x), exact(y)))

    def row_sum(self, w: torch.Tensor) -> Number:
        return self.number(_core.row_sum_above(exact(w)))

    def length(self, v: torch.Tensor) -> Number:
        return self.number(_core.length_above(exact(v)))

    def largest_entry(self, v: torch.Tensor) -> Number:
        return self.number(float(exact(v).abs().max()))

    def root(self, a: Number) -> Number:
        return self.number(a).root()

    def smaller(self, a: Number, b: Number) -> Number:
        a, b = self.number(a), self.number(b)
        return b if b < a else a

    def largest(self, numbers: Iterable[Number]) -> Number:
        return reduce(lambda a, b: b if self.number(a) < self.number(b) else a, numbers)

    def phi_inverse(self, n: int) -> float:
        return _core.kim21_phi_inverse(n)

    def largest_column_sum(self, spread: Number, n: int, mask: str) -> Number:
        if mask == "any":
            return self.number(float(n))
        # where the logits are beyond all numbers the sum is n
        return _core.largest_column_sum(min(self.number(spread).value, 1e300), n, mask)

    def sigmoid_ball(self, score: Number, value: Number, radius: Number, n: int) -> Number:
        # it is linear in ‖V‖
        size, most = self.number(score).value, self.number(radius).value
        if math.isinf(size) or math.isinf(most):
            raise RunError("the bound on sigmoid attention is beyond the range of f64")
        return _core.ramapuram24_ball(size, 1.0, most, n) * value

    def l2_path_factor(self, q: torch.Tensor, v: torch.Tensor, o: torch.Tensor) -> Number:
        arrays = {"q": exact(q).flatten(0, 1).T, "v": exact(v).flatten(0, 1).T, "o": exact(o).flatten(0, 1)}
        return _core.l2_path_factor(_core.layer(arrays, len(q), len(q), "l2"))


Arithmetic = Differentiable | Proved


def _wide(w: torch.Tensor) -> torch.Tensor:
    """Half precision in f32."""
    return w.float() if w.dtype in (torch.float16, torch.bfloat16) else w


def exact(w: torch.Tensor) -> torch.Tensor:
    """The numbers in f64, in the memory of the CPU."""
    return w.detach().to("cpu", torch.float64)

