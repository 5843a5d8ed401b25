"""Heads of models of `lipscope train` that look by distance, or stand apart, or know where they are."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import nn

from lipscope.torch.arithmetic import ABOVE, Arithmetic, Number
from lipscope.torch.bound import Constant, Inputs
from lipscope.torch.constants import dot_constant, l2_constant, root_of_squares

Places = Iterator[tuple[str, torch.Tensor]]
"""The names of tensors in a folder, where weights act from the right, with views of the parameters."""


class PositionHeads(nn.Module):
    """Heads that look by distance alone, side by side.

        y_i = [Σ_{t ≤ i} p_ht x_{i−t} V_h]_h,  p_h = softmax(b_h) over the distances 0 … T − 1

    ``distance_bias`` is b [H, T] and ``v_proj_weight`` V [H·k, d], as torch.nn.Linear has its weight.
    """

    def __init__(self, width: int, heads: int, head_width: int, context: int) -> None:
        super().__init__()
        self.num_heads, self.head_dim = heads, head_width
        self.distance_bias = nn.Parameter(torch.zeros(heads, context))
        self.v_proj_weight = nn.Parameter(torch.empty(heads * head_width, width))
        nn.init.xavier_uniform_(self.v_proj_weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[samples, n, d] → [samples, n, H·k]."""
        back = _distances(x.shape[1], x.device)
        p = self.distance_bias.softmax(-1)[:, back.clamp(min=0)].masked_fill(back < 0, 0.0)
        return _side_by_side(p @ _heads(x @ self.v_proj_weight.T, self.num_heads))

    def constant_beside(self, shares: torch.Tensor, over: Inputs) -> Constant:
        """Of heads times their shares c: theory/position_heads_bound.h. Σ_t p_ht is 1."""
        a = over.arithmetic
        v = shares[:, None, None] * self.v_proj_weight.reshape(self.num_heads, self.head_dim, -1).to(shares.dtype)
        alone = root_of_squares(a, [a.norm(one) for one in v])
        if over.norm == "2":
            value = a.norm(v.flatten(0, 1))
        else:
            value = a.row_sum(v.flatten(0, 1)) if over.norm == "inf" else alone
        return Constant(value, None if over.radius is None else alone * over.radius, "position_heads")

    def places(self) -> Places:
        yield "p.bias", self.distance_bias
        yield "p.v.weight", self.v_proj_weight.T


class ComparingHeads(nn.Module):
    """Causal heads that compare tokens: dot-product, L2 [Kim21] or untied L2.

        y = [P_h v_h]_h W_O,  P_h = softmax(s_h + b_h)

    s is ⟨q_i, k_j⟩/√k, or −|q_i − k_j|²/√k; b_h,i−j a learnt number for each distance, where positions are "relative";
    queries and keys of "rotary" positions are turned, as in Llama. Tied L2 ("l2") has k = q and
    v_h = q_h W_Q,hᵀ W_V,h/√k. Without W_O heads stand side by side.

    With a ``contraction`` c, tied L2 is divided by a bound on the constant of each coordinate j in the inf-norm, and
    multiplied by c: model/coordinate_contraction.h.
    """

    in_proj_weight: nn.Parameter  # of kinds with keys of their own: queries, keys and values
    q_proj_weight: nn.Parameter  # of tied L2
    v_proj_weight: nn.Parameter
    out_proj_weight: nn.Parameter | None
    distance_bias: nn.Parameter | None

    def __init__(
        self,
        kind: str,
        width: int,
        heads: int,
        head_width: int,
        context: int,
        *,
        positions: str = "none",
        projects: bool = True,
        contraction: float | None = None,
    ) -> None:
        super().__init__()
        self.kind, self.num_heads, self.head_dim, self.context = kind, heads, head_width, context
        self.rotary, self.contraction = positions == "rotary", contraction
        features = heads * head_width
        shapes: dict[str, tuple[int, int] | None] = {
            "in_proj_weight": None if kind == "l2" else (3 * features, width),
            "q_proj_weight": (features, width) if kind == "l2" else None,
            "v_proj_weight": (features, width) if kind == "l2" else None,
            "out_proj_weight": (width, features) if projects else None,
        }
        for name, shape in shapes.items():
            weight = None if shape is None else nn.Parameter(nn.init.xavier_uniform_(torch.empty(shape)))
            self.register_parameter(name, weight)
        relative = nn.Parameter(torch.zeros(heads, context)) if positions == "relative" else None
        self.register_parameter("distance_bias", relative)

    def extra_repr(self) -> str:
        how = "rotary" if self.rotary else "none" if self.distance_bias is None else "relative"
        divided = "" if self.contraction is None else f", contraction={self.contraction}"
        return f"{self.kind!r}, {self.num_heads}, positions={how!r}{divided}"

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[samples, n, d] → [samples, n, d], or [samples, n, H·k] of heads side by side."""
        if self.kind == "l2":
            q = _heads(x @ self.q_proj_weight.T, self.num_heads)
            mixed = self._weights_of(q, q) @ q
            if self.out_proj_weight is None:
                return _side_by_side(mixed @ self._inner())
            return _side_by_side(mixed) @ self._path(self.out_proj_weight)
        q, k, v = (_heads(x @ w.T, self.num_heads) for w in self.in_proj_weight.chunk(3))
        y = _side_by_side(self._weights_of(q, k) @ v)
        return y if self.out_proj_weight is None else y @ self.out_proj_weight.T

    def _weights_of(self, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        """P [samples, H, n, n]."""
        n, root = q.shape[-2], math.sqrt(self.head_dim)
        if self.rotary:
            q, k = (_turned(z) for z in (q, k))
        if self.kind == "dot":
            scores = q @ k.transpose(-1, -2) / root
        else:
            # distances do not feel a shift, and what cancels becomes small; softmax does not feel −|q_i|²/√k
            first = k[..., :1, :].detach()
            q, k = q - first, k - first
            scores = (2.0 * q @ k.transpose(-1, -2) - k.square().sum(-1)[..., None, :]) / root
        back = _distances(n, q.device)
        if self.distance_bias is not None:
            scores = scores + self.distance_bias[:, back.clamp(min=0)]
        return scores.masked_fill(back < 0, -math.inf).softmax(-1)

    def _by_heads(self, weight: torch.Tensor) -> torch.Tensor:
        return weight.reshape(self.num_heads, self.head_dim, -1)

    def _inner(self) -> torch.Tensor:
        """W_Q,hᵀ W_V,h/√k [H, k, k]: P x A_h W_V,h = (P q) W_Q,hᵀ W_V,h/√k."""
        q, v = self._by_heads(self.q_proj_weight), self._by_heads(self.v_proj_weight)
        return q @ v.transpose(1, 2) / math.sqrt(self.head_dim)

    def _path(self, output: torch.Tensor) -> torch.Tensor:
        """What tied L2 multiplies P q with [H·k, d]."""
        path = (self._inner() @ self._by_heads(output.T)).flatten(0, 1)
        if self.contraction is None:
            return path
        return path * self.column_factors(output, self.contraction).to(path.dtype)

    def column_factors(self, output: torch.Tensor, contraction: float) -> torch.Tensor:
        """c/c_j of each coordinate j, in f64; 1 where nothing is written.

        c_j = Σ_h [4p_h N_h |E_h e_j|₂ + |W_Q,h E_h e_j|₁], N_h² = Σ|W_Q,h W_Q,hᵀ|, E_h = W_Q,hᵀ W_V,h W_O,h/√k.
        """
        q, v, o = (self._by_heads(w).double() for w in (self.q_proj_weight, self.v_proj_weight, output.T))
        effective = q @ v.transpose(1, 2) / math.sqrt(self.head_dim) @ o
        compared = 4.0 * self._phi_inverses() * (q.transpose(1, 2) @ q).abs().sum((1, 2)).sqrt()
        # the root has no slope at 0
        squares = effective.square().sum(1)
        lengths = torch.where(squares > 0, squares, torch.ones_like(squares)).sqrt() * (squares > 0)
        sums = (q.transpose(1, 2) @ effective).abs().sum(1)
        c = (compared[:, None] * lengths + sums).sum(0)
        return torch.where(c > 0, contraction / torch.where(c > 0, c, torch.ones_like(c)), torch.ones_like(c))

    def _phi_inverses(self) -> torch.Tensor:
        """p_h [H] with p e^{p+1} = Σ_{t=1}^{T−1} e^{b_t − b_0}, or T − 1."""
        bias: torch.Tensor | None = self.distance_bias
        if bias is None:
            bias = self.q_proj_weight.new_zeros(self.num_heads, self.context)
        if self.context == 1:
            return bias.new_zeros(self.num_heads, dtype=torch.float64)
        goal = (bias[:, 1:].double().logsumexp(-1) - bias[:, 0].double()) - 1.0
        with torch.no_grad():  # Newton's method on ln p + p = goal, from the left
            p = torch.exp(goal.clamp(max=0.0)) / 2.0
            for _ in range(60):
                p = p + (goal - p - p.log()) * p / (1.0 + p)
        # one step more, which does not change p, and has its gradient dp = p/(1 + p) dgoal
        return p + (goal - p - p.log()) * p / (1.0 + p)

    # ---- its constant

    def constant(self, over: Inputs) -> Constant:
        """What :func:`lipscope.torch.lipschitz_bound` asks for, with W_O."""
        self._refuse(over)
        if self.out_proj_weight is None:
            raise over.refuse(self, "without an output matrix is bounded by HeadsApart")
        a = over.arithmetic
        o = self._by_heads(self.out_proj_weight.T)
        slack = 1.0
        if self.contraction is not None:
            # the factors are rounded
            o, slack = o.double() * self.column_factors(self.out_proj_weight, self.contraction), 1.0 + 1e-9
        value, by = self._bound(over, slice(None), o)
        radius = None
        if over.radius is not None:
            through = [self._through(a, h, o[h]) for h in range(self.num_heads)]
            radius = sum(through[1:], through[0]) * over.radius * slack
        return Constant(value * slack, radius, by)

    def constant_beside(self, shares: torch.Tensor, over: Inputs) -> Constant:
        """Of heads that stand side by side, times their shares: squares of constants add up, or the largest counts."""
        self._refuse(over)
        a = over.arithmetic
        one = torch.eye(self.head_dim, dtype=torch.float64, device=shares.device)
        found = [self._bound(over, slice(h, h + 1), one[None]) for h in range(self.num_heads)]
        numbers = [_share(a, shares, h) for h in range(self.num_heads)]
        heads = [value * c for (value, _), c in zip(found, numbers)]
        radius = None
        if over.radius is not None:
            through = [self._through(a, h, one) * c for h, c in enumerate(numbers)]
            radius = root_of_squares(a, through) * over.radius
        return Constant(a.largest(heads) if over.norm == "inf" else root_of_squares(a, heads), radius, found[0][1])

    def _refuse(self, over: Inputs) -> None:
        if self.kind == "l2-untied":
            raise over.refuse(self, "of kind 'l2-untied' has no constant")
        if self.rotary or self.distance_bias is not None:
            how = "rotary" if self.rotary else "relative"
            raise over.refuse(self, f"with {how} positions has no bound that is known here")
        if self.kind == "dot" and over.radius is None:
            raise over.refuse(self, "has no constant over all inputs; give radius")

    def _bound(self, over: Inputs, heads: slice, o: torch.Tensor) -> tuple[Number, str]:
        a, n = over.arithmetic, over.length_for(self)
        if self.kind == "l2":
            q, v = (self._by_heads(w)[heads].to(o.dtype) for w in (self.q_proj_weight, self.v_proj_weight))
            return l2_constant(a, q, v, o, n=n, norm=over.norm, mask="causal")
        q, k, v = (self._by_heads(w)[heads].to(o.dtype) for w in self.in_proj_weight.chunk(3))
        found = dot_constant(a, q, k, v, o, None, n=n, norm=over.norm, mask="causal", radius=over.radius)
        if found is None:
            raise over.refuse(self, f"has no bound in the {over.norm}-norm")
        return found

    def _through(self, a: Arithmetic, h: int, o: torch.Tensor) -> Number:
        """How much longer a mean of tokens becomes in head h."""
        if self.kind != "l2":
            value = self._by_heads(self.in_proj_weight.chunk(3)[2])[h]
            return a.product_norm(o.T, value.to(o.dtype))
        q, v = (self._by_heads(w)[h].to(o.dtype) for w in (self.q_proj_weight, self.v_proj_weight))
        return a.norm(q) * a.norm(q) * a.product_norm(o.T, v) * (ABOVE / math.sqrt(self.head_dim))

    def places(self) -> Places:
        if self.kind == "l2":
            yield "q.weight", self.q_proj_weight.T
            yield "v.weight", self.v_proj_weight.T
        else:
            yield "qkv.weight", self.in_proj_weight.T
        if self.out_proj_weight is not None:
            yield "o.weight", self.out_proj_weight.T
        if self.distance_bias is not None:
            yield "distance_bias", self.distance_bias


class HeadsApart(nn.Module):
    """Heads that write coordinates of their own, position heads first, times shares c with Σc² = 1.

        y = [c_1 y_1, …, c_H y_H],  c = √softmax(s)

    ``share`` is s [H].
    """

    def __init__(self, position: PositionHeads | None, comparing: ComparingHeads | None) -> None:
        super().__init__()
        self.position, self.comparing = position, comparing
        self.share = nn.Parameter(torch.zeros(sum(h.num_heads for h in (position, comparing) if h is not None)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[samples, n, d] → [samples, n, d]."""
        y = torch.cat([heads(x) for heads in (self.position, self.comparing) if heads is not None], -1)
        return y * self.share.softmax(0).sqrt().repeat_interleave(y.shape[-1] // len(self.share))

    def constant(self, over: Inputs) -> Constant:
        """What :func:`lipscope.torch.lipschitz_bound` asks for: squares add up; in the inf-norm the largest counts."""
        a = over.arithmetic
        # in f64 a share is rounded by less than this
        shares = self.share.double().softmax(0).sqrt() * (1.0 + 2.0**-40)
        found = []
        first = self.position.num_heads if self.position is not None else 0
        if self.position is not None:
            found.append(self.position.constant_beside(shares[:first], over.inside("position")))
        if self.comparing is not None:
            found.append(self.comparing.constant_beside(shares[first:], over.inside("comparing")))
        if len(found) == 1:
            return found[0]
        values = [one.value for one in found]
        value = a.largest(values) if over.norm == "inf" else root_of_squares(a, values)
        radii = [one.radius for one in found if one.radius is not None]
        radius = root_of_squares(a, radii) if len(radii) == len(found) else None
        return Constant(value, radius, f"apart({', '.join(one.by for one in found)})")

    def places(self) -> Places:
        for heads in (self.position, self.comparing):
            if heads is not None:
                yield from heads.places()
        yield "share", self.share


def _share(a: Arithmetic, shares: torch.Tensor, h: int) -> Number:
    return float(shares[h].detach()) if a.proves else shares[h]


def _distances(n: int, device: torch.device) -> torch.Tensor:
    """i − j [n, n]."""
    places = torch.arange(n, device=device)
    return places[:, None] - places


def _heads(z: torch.Tensor, heads: int) -> torch.Tensor:
    """[samples, n, H·k] as [samples, H, n, k]."""
    return z.reshape(*z.shape[:-1], heads, -1).transpose(1, 2)


def _side_by_side(z: torch.Tensor) -> torch.Tensor:
    """[samples, H, n, k] as [samples, n, H·k]."""
    return z.transpose(1, 2).flatten(2)


def _turned(z: torch.Tensor) -> torch.Tensor:
    """Feature f < k/2 and f + k/2 turned by the angle i · 10000^(−2f/k) at position i; angles in f64."""
    half = z.shape[-1] // 2
    speeds = 10000.0 ** (-torch.arange(half, dtype=torch.float64, device=z.device) / half)
    angles = torch.arange(z.shape[-2], dtype=torch.float64, device=z.device)[:, None] * speeds
    cos, sin = angles.cos().to(z.dtype), angles.sin().to(z.dtype)
    first, second = z[..., :half], z[..., half:]
    return torch.cat([first * cos - second * sin, first * sin + second * cos], -1)
