"""Lipschitz constants of attention from above, as the C++ folder theory/ proves them, in either arithmetic.

Weights are [H, k, d], as torch has them (y = W x), outputs [H, w, e]. Each function gives the smallest bound that is
known for the norm, and the name of its theorem. What a token may see: ``mask`` is "none" (all), "causal", or "any":
whatever the module that asks allows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

from lipscope import _core
from lipscope.torch.arithmetic import ABOVE, Arithmetic, Number


@dataclass(frozen=True)
class HeadSizes:
    """The norms of heads, and of what joins them."""

    value: list[Number]  # ‖W_V‖
    projected: list[Number]  # ‖W_V W_O,h‖
    output: Number  # ‖W_O‖

    @staticmethod
    def of(a: Arithmetic, v: torch.Tensor, o: torch.Tensor) -> HeadSizes:
        return HeadSizes(
            value=[a.norm(one) for one in v],
            projected=[a.product_norm(out.T, one) for one, out in zip(v, o)],
            output=a.norm(o.flatten(0, 1)),
        )

    def together(self, a: Arithmetic, alone: list[Number], projected: list[Number]) -> Number:
        """Of the layer: the sum over heads, or ‖W_O‖(Σ_h alone²)^{1/2}: theory/layer_heads.h."""
        return a.smaller(sum(projected[1:], projected[0]), root_of_squares(a, alone) * self.output)


def l2_constant(
    a: Arithmetic, q: torch.Tensor, v: torch.Tensor, o: torch.Tensor, *, n: int, norm: str, mask: str
) -> tuple[Number, str]:
    """Tied L2 attention, over all inputs: theory/kim21.h, row_sums.h, l2_diagonal_apart.h, l2_kernel.h."""
    p = a.phi_inverse(n)
    inverse_root = 1.0 / math.sqrt(q.shape[1]) * ABOVE
    if norm == "inf":
        query = a.largest(a.row_sum(one.T) * a.row_sum(one) for one in q)
        value = a.largest(a.row_sum(one) for one in v)
        weights = a.row_sum(o.flatten(0, 1).T) * query * value
        return (a.number(p) * 4.0 + inverse_root) * weights, "kim21_inf"
    sizes = HeadSizes.of(a, v, o)
    squared = [a.norm(one) * a.norm(one) for one in q]
    alone = [s * w for s, w in zip(squared, sizes.value)]
    if norm == "token":
        weights = sizes.together(a, alone, [s * w for s, w in zip(squared, sizes.projected)])
        return (a.number(p) * 4.0 + 1.0) * inverse_root * weights, "l2_row_sums"
    weights = root_of_squares(a, alone) * sizes.output
    apart = (a.number(p) * 2.0 + (a.number(p) * 2.0 + 1.0) * a.root(float(n))) * inverse_root * weights
    if mask == "any":
        return apart, "l2_diagonal_apart"
    factor = a.smaller(a.l2_path_factor(q, v, o), weights * inverse_root)
    kernel = _core.l2_kernel(n, mask)
    return best(a, (apart, "l2_diagonal_apart"), (factor * _plain(a, kernel), "l2_kernel"))


def cosine_constant(
    a: Arithmetic,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    o: torch.Tensor,
    *,
    tau: float,
    nu: float,
    epsilon: float,
    n: int,
    norm: str,
    mask: str,
) -> tuple[Number, str] | None:
    """Scaled cosine attention with normalised values, over all inputs: theory/cosine_column_sums.h, qi23.h.

    The same in the token norm, where a row of P is a mean and √C is 1:

        Lip_token ≤ ν ε^{-1/2} (τ‖W_Q‖ + τ‖W_K‖ + ‖W_V‖).
    """
    if norm == "inf":
        return None
    slope = nu / math.sqrt(epsilon) * ABOVE
    columns = a.root(a.largest_column_sum(tau, n, mask)) if norm == "2" else a.number(1.0)
    by_columns, published = [], []
    for wq, wk, wv in zip(q, k, v):
        query, key, value = a.norm(wq), a.norm(wk), a.norm(wv)
        by_columns.append((query * tau + columns * (key * tau + value)) * slope)
        published.append((key * (tau * n) + query * tau + value * 2.0) * (slope * n))
    outputs = [a.norm(one) for one in o]
    sizes = HeadSizes(value=[], projected=[], output=a.norm(o.flatten(0, 1)))

    def layer(heads: list[Number]) -> Number:
        return sizes.together(a, heads, [head * out for head, out in zip(heads, outputs)])

    if norm == "token":
        return layer(by_columns), "cosine_row_sums"
    return best(a, (layer(by_columns), "cosine_column_sums"), (layer(published), "qi23_cosine"))


def sigmoid_constant(
    a: Arithmetic,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    o: torch.Tensor,
    *,
    n: int,
    norm: str,
    radius: Number,
) -> tuple[Number, str] | None:
    """Sigmoid attention over tokens of norm up to the radius, any mask: theory/ramapuram24.h.

    Its proof sums the norms of the n blocks of a row: the value is one in the token norm as well.
    """
    if norm == "inf":
        return None
    sizes = HeadSizes.of(a, v, o)
    scores = [a.product_norm(wq.T, wk) * (1.0 / math.sqrt(q.shape[1]) * ABOVE) for wq, wk in zip(q, k)]
    alone = [a.sigmoid_ball(s, w, radius, n) for s, w in zip(scores, sizes.value)]
    projected = [a.sigmoid_ball(s, w, radius, n) for s, w in zip(scores, sizes.projected)]
    return sizes.together(a, alone, projected), "ramapuram24_ball"


def dot_constant(
    a: Arithmetic,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    o: torch.Tensor,
    q_bias: torch.Tensor | None,
    *,
    n: int,
    norm: str,
    mask: str,
    radius: Number,
) -> tuple[Number, str] | None:
    """Dot-product attention over tokens of norm up to the radius: theory/column_sums.h, row_sums.h."""
    if norm == "inf":
        return None
    sizes = HeadSizes.of(a, v, o)
    inverse_root = 1.0 / math.sqrt(q.shape[1]) * ABOVE
    factors = []
    for h in range(len(q)):
        score = a.product_norm(q[h].T, k[h]) * inverse_root * radius * radius
        pull = score
        if q_bias is not None:
            # c = b_Q W_Kᵀ/√k, by lengths: a product of the two would be rounded both ways
            pull = score + a.length(q_bias[h]) * a.norm(k[h]) * inverse_root * radius
        if norm == "token":
            factors.append(score + pull + 1.0)
        else:
            factors.append(score + (pull + 1.0) * a.root(a.largest_column_sum(pull, n, mask)))
    alone = [f * w for f, w in zip(factors, sizes.value)]
    projected = [f * w for f, w in zip(factors, sizes.projected)]
    by = "row_sums" if norm == "token" else "column_sums_causal" if mask == "causal" else "column_sums"
    return sizes.together(a, alone, projected), by


def root_of_squares(a: Arithmetic, numbers: list[Number]) -> Number:
    """(Σ x²)^{1/2}; the root of one square is itself."""
    if len(numbers) == 1:
        return numbers[0]
    squares = [x * x for x in numbers]
    return a.root(sum(squares[1:], squares[0]))


def best(a: Arithmetic, *bounds: tuple[Number, str]) -> tuple[Number, str]:
    """The smallest of them. Only a proof has the name of the one that it is."""
    value, by = bounds[0]
    for other, name in bounds[1:]:
        if a.proves and a.smaller(value, other) is not value:
            by = name
        value = a.smaller(value, other)
    return value, by


def _plain(a: Arithmetic, magnitude: Any) -> Number:
    """A number of the core that depends on no weight."""
    return magnitude if a.proves else magnitude.value

