"""Residual maps that can be inverted, x + c f(x) with c Lip(f) < 1, and how they change volumes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from lipscope import _core
from lipscope.errors import InputError, RunError
from lipscope.torch.bound import NORMS, Constant, Inputs, constant_of, proved_bound
from lipscope.torch.capped import first_of
from lipscope.torch.function import check_input
from lipscope.torch.plain_kernels import plain_kernels
from lipscope.torch.widened import widened

_SMALL = 512  # unknowns of a sequence up to which its Jacobian is formed
_ROUNDOFF = 2.0**-53


@dataclass(frozen=True)
class Inversion:
    """An input whose output is y, and what is proved of it."""

    x: torch.Tensor
    iterations: int
    enough_iterations: int | None
    """So many were known to be enough after the first, from the contraction; None where nothing is proved."""
    error_bound: float | None
    """x is at most this far from the exact inverse, in the norm, whichever sequence of the batch."""
    contraction: float | None
    """c Lip(f) from above, if it is proved to be below 1."""
    residual: float
    """How far the output of x is from y, measured."""
    status: str
    """"converged"; "not-converged": iterations ran out, or all but rounding is done; "diverged"."""


@dataclass(frozen=True)
class LogDeterminant:
    """log|det| of the Jacobian at each sequence, and how far it may be off."""

    value: torch.Tensor
    truncation: float
    """What was cut off the series is at most this; 0 where the Jacobian was formed."""
    error_bar: torch.Tensor
    """Half of Student's interval around the value at the confidence asked: an error bar, not a bound. 0 where exact."""
    terms: int
    probes: int

    @property
    def exact(self) -> bool:
        """Whether the Jacobian was formed: the value is exact up to rounding."""
        return self.terms == 0


class InvertibleResidual(nn.Module):
    """g(x) = x + c f(x), with an inverse wherever c Lip(f) < 1 [Kim21].

    f is a module from sequences to sequences of the same shape whose constant is known, such as
    :class:`ContractiveL2SelfAttention`; of several outputs the first is meant. The contraction q = c Lip(f) is proved
    anew at every call of :meth:`inverse` and :meth:`log_determinant`, for the weights and the length there.

    Args:
        f: The branch.
        c: Its factor, above 0.
        norm: In which the constant of f is taken, "2", "inf" or "token".
    """

    def __init__(self, f: nn.Module, c: float = 0.9, *, norm: str = "inf") -> None:
        super().__init__()
        if not 0.0 < c < math.inf:
            raise InputError(f"c: {c}; expected a number above 0")
        if norm not in NORMS:
            raise InputError(f"norm: {norm!r}; expected '2', 'inf' or 'token'")
        self.f, self.c, self.norm = f, c, norm

    def extra_repr(self) -> str:
        return f"c={self.c}, norm={self.norm!r}"

    def forward(self, x: torch.Tensor, **masks: Any) -> torch.Tensor:
        return x + self.c * first_of(self.f(x, **masks))

    def constant(self, over: Inputs) -> Constant:
        """What :func:`lipscope.torch.lipschitz_bound` asks for: 1 + c Lip(f)."""
        branch = constant_of(self.f, over.inside("f"))
        radius = None
        if over.radius is not None and branch.radius is not None:
            radius = over.radius + branch.radius * self.c
        return Constant(branch.value * self.c + 1.0, radius, f"residual({branch.by})")

    def contraction(self, n: int) -> float | None:
        """q = c Lip(f) for sequences of n tokens, proved; None if that is not below 1.

        InputError where f has no constant over all inputs.
        """
        proof = proved_bound(self.f, n, self.norm)
        if proof.upper is None:
            return None
        # a product with one does not round
        q: float = self.c if proof.upper == 1.0 else math.nextafter(self.c * proof.upper, math.inf)
        return q if q < 1.0 else None

    @torch.no_grad()
    def inverse(
        self, y: torch.Tensor, *, tolerance: float = 1e-10, max_iterations: int = 1000, **masks: Any
    ) -> Inversion:
        """x with g(x) = y, for a sequence [n, d] or several [samples, n, d].

            x⁽⁰⁾ = y,  x⁽ᵏ⁺¹⁾ = y − c f(x⁽ᵏ⁾),  |x⁽ᵏ⁾ − x*| ≤ (q s_k + δ)/(1−q),  s_k = |x⁽ᵏ⁾ − x⁽ᵏ⁻¹⁾| ≤ qᵏ⁻¹ s_1

        in f64 on the weights as they are, until the error bound (or, where q < 1 is not proved, the step) is at most
        tolerance · max(1, |y|). δ = 4u|y| + 1e-12 |c f(x)| allows for rounding; for that inside f it is an allowance,
        not a proof. x has y's type, and its rounding is in the error bound.
        """
        check_input(y, "y")
        if y.dim() not in (2, 3):
            raise InputError(f"y: shape {list(y.shape)}; expected [n, d] or [samples, n, d]")
        if not tolerance > 0.0 or max_iterations < 1:
            raise InputError(f"tolerance: {tolerance}, max_iterations: {max_iterations}; expected above 0, 1 or more")
        wide = widened(lambda at: self.c * first_of(self.f(at, **masks)), torch.float64)
        q = self.contraction(y.shape[-2])
        exact = y.detach().double()
        size = self._size(exact)
        target = tolerance * max(1.0, size)
        stretch = None if q is None else _above(1.0 / (1.0 - q))
        x, first, step, k, enough, bound = exact, 0.0, 0.0, 0, None, None
        status = "not-converged"
        pull = wide(x)
        for k in range(1, max_iterations + 1):
            following = exact - pull
            step = self._size(following - x)
            first = step if k == 1 else first
            if not math.isfinite(step) or step > 1e6 * max(first, size):
                status = "diverged"
                break
            delta = 4.0 * _ROUNDOFF * size + 1e-12 * self._size(pull)
            x, pull = following, wide(following)
            reached = step
            if q is not None and stretch is not None:
                enough = _enough_iterations(q, step, target) if k == 1 else enough
                reached = bound = _above(stretch * (q * step + delta))
            if reached <= target:
                status = "converged"
                break
            # what is left is rounding: further steps would change nothing
            if q is not None and q * step <= 0.1 * delta:
                break
        residual = self._size(x + pull - exact)
        found = x.to(y.dtype)
        if bound is not None:
            bound = _above(bound + self._size(found.double() - x))
        return Inversion(found, k, enough, bound, q, residual, status)

    def log_determinant(
        self,
        x: torch.Tensor,
        *,
        truncation: float = 1e-3,
        probes: int = 16,
        confidence: float = 0.95,
        seed: int = 0,
        exact: bool | None = None,
        **masks: Any,
    ) -> LogDeterminant:
        """log|det ∂g/∂x| at a sequence [n, d] or at each of several [samples, n, d], differentiable by x and weights.

        Up to 512 unknowns a sequence (or with ``exact=True``) the Jacobian is formed. Otherwise

            log det(I + A) = Σ_{k≥1} (−1)^{k+1} tr(Aᵏ)/k,  A = c ∂f/∂x,

        is cut where what follows, at most N q^{K+1}/((K+1)(1−q)) for N unknowns, is below ``truncation``, and each
        trace is the mean of vᵀAᵏv over ``probes`` vectors of random signs [Hutchinson90; Chen19].
        """
        check_input(x, "x")
        if x.dim() not in (2, 3):
            raise InputError(f"x: shape {list(x.shape)}; expected [n, d] or [samples, n, d]")
        if probes < 2 or not truncation > 0.0 or not 0.0 < confidence < 1.0:
            raise InputError(
                f"probes: {probes}, truncation: {truncation}, confidence: {confidence}; expected at least 2, above 0, "
                "and between 0 and 1"
            )
        several = x if x.dim() == 3 else x[None]
        unknowns = several[0].numel()
        q = self.contraction(x.shape[-2])
        form = unknowns <= _SMALL if exact is None else exact
        if q is None and not form:
            raise InputError("x: c Lip(f) is not proved to be below 1, and the series needs it; exact=True does not")
        keep = torch.is_grad_enabled()
        with torch.enable_grad(), plain_kernels():
            at = several if several.requires_grad else several.detach().requires_grad_()
            y = self.c * first_of(self.f(at, **masks))
            if y.shape != at.shape:
                raise InputError(f"f: takes {list(at.shape)} to {list(y.shape)}; expected the same shape")
            if form:
                value, bar = _formed(y, at, keep), torch.zeros(len(at), dtype=at.dtype, device=at.device)
                terms, cut = 0, 0.0
            else:
                assert q is not None
                terms = _enough_terms(unknowns, q, truncation)
                cut = _cut_off(unknowns, q, terms)
                sums = _series(y, at, terms, probes, seed, keep)
                value = sums.mean(0)
                quantile = _core.student_quantile((1.0 + confidence) / 2.0, probes - 1)
                bar = quantile * sums.detach().std(0) / math.sqrt(probes)
        if not bool(torch.isfinite(value.detach()).all()):
            raise RunError("log_determinant: not finite")
        value = value if keep else value.detach()
        return LogDeterminant(
            value if x.dim() == 3 else value[0], cut, bar if x.dim() == 3 else bar[0], terms, 0 if form else probes
        )

    def _size(self, x: torch.Tensor) -> float:
        """The norm of the sequence, the largest of a batch."""
        tokens = x.reshape(-1, *x.shape[-2:])
        if self.norm == "inf":
            return float(tokens.abs().max())
        lengths = tokens.square().sum(-1)
        return float((lengths.max() if self.norm == "token" else lengths.sum(-1).max()).sqrt())


def _above(x: float) -> float:
    """More than up to a hundred roundings away."""
    return x * (1.0 + 2.0**-44)


def _enough_iterations(q: float, first_step: float, target: float) -> int:
    """The least k ≥ 1 with qᵏ/(1−q) s_1 ≤ target."""
    share = math.inf if first_step == 0.0 else target * (1.0 - q) / first_step
    return 1 if not share < q or q == 0.0 else math.ceil(math.log(share) / math.log(q))


def _cut_off(unknowns: int, q: float, terms: int) -> float:
    return _above(unknowns * q ** (terms + 1) / ((terms + 1) * (1.0 - q)))


def _enough_terms(unknowns: int, q: float, most: float) -> int:
    terms = 1
    while _cut_off(unknowns, q, terms) > most:
        terms += 1
        if terms >= 1_000_000:
            raise InputError(f"truncation: {most} needs more than a million terms at contraction {q}")
    return terms


def _formed(y: torch.Tensor, x: torch.Tensor, keep: bool) -> torch.Tensor:
    """log|det(I + A)| of each sequence: they do not feel each other, so that a backward pass serves all."""
    unknowns = x[0].numel()
    rows = []
    for i in range(unknowns):
        row = torch.autograd.grad(y.flatten(1)[:, i].sum(), x, create_graph=keep, retain_graph=True)[0]
        rows.append(row.flatten(1))
    identity = torch.eye(unknowns, dtype=x.dtype, device=x.device)
    found: torch.Tensor = torch.linalg.slogdet(torch.stack(rows, 1) + identity)[1]
    return found


def _series(y: torch.Tensor, x: torch.Tensor, terms: int, probes: int, seed: int, keep: bool) -> torch.Tensor:
    """[probes, samples] of Σ_k (−1)^{k+1} vᵀAᵏv/k."""
    random = torch.Generator().manual_seed(seed)
    sums = []
    for _ in range(probes):
        v = (torch.randint(0, 2, x.shape, generator=random) * 2 - 1).to(x)
        power, total = v, torch.zeros(len(x), dtype=x.dtype, device=x.device)
        for k in range(1, terms + 1):
            power = torch.autograd.grad(y, x, power, create_graph=keep, retain_graph=True)[0]  # (Aᵀ)ᵏv
            total = total + (1.0 if k % 2 else -1.0) / k * (power * v).flatten(1).sum(1)
        sums.append(total)
    return torch.stack(sums)
