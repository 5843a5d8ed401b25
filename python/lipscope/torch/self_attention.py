"""Self-attention whose Lipschitz constant is known, in place of torch.nn.MultiheadAttention."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from lipscope.attention import Attention
from lipscope.errors import InputError
from lipscope.records import Record
from lipscope.torch.arithmetic import ABOVE, Differentiable, Number
from lipscope.torch.attention import Output, cosine_attention, l2_attention, sigmoid_attention
from lipscope.torch.bound import NORMS, Constant, Inputs, lipschitz_bound, proved_bound
from lipscope.torch.constants import cosine_constant, l2_constant, sigmoid_constant
from lipscope.torch.widened import short_name

if TYPE_CHECKING:
    from typing import Self


class SelfAttention(nn.Module):
    """What the kinds share: the arguments and masks of torch.nn.MultiheadAttention, for a sequence and itself.

    A subclass has its weights as parameters [out, in], as torch.nn.Linear has them, and says what its heads do.
    """

    kind: str
    """As :class:`lipscope.Attention` calls it."""

    # torch.nn.TransformerEncoderLayer asks for these before it takes a fused path of its own, which would compute
    # dot-product attention
    in_proj_bias = None
    _qkv_same_embed_dim = False

    out_proj_weight: nn.Parameter
    out_proj_bias: nn.Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = False,
        batch_first: bool = True,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        for name, number in (("embed_dim", embed_dim), ("num_heads", num_heads)):
            if not isinstance(number, int) or isinstance(number, bool) or number < 1:
                raise InputError(f"{name}: {number!r}; expected a positive whole number")
        if embed_dim % num_heads:
            raise InputError(f"embed_dim: {embed_dim} does not divide into {num_heads} heads")
        if not 0.0 <= dropout < 1.0:
            raise InputError(f"dropout: {dropout}; expected a share from 0 to below 1")
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.dropout, self.batch_first = dropout, batch_first
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        for name in (*self._projections(), "out_proj_weight"):
            self.register_parameter(name, nn.Parameter(torch.empty(embed_dim, embed_dim, **made)))
        self.register_parameter("out_proj_bias", nn.Parameter(torch.empty(embed_dim, **made)) if bias else None)
        self.reset_parameters()

    def _projections(self) -> tuple[str, ...]:
        """The names of the weights that act on the input."""
        return "q_proj_weight", "k_proj_weight", "v_proj_weight"

    def reset_parameters(self) -> None:
        """New random weights."""
        for name in (*self._projections(), "out_proj_weight"):
            nn.init.xavier_uniform_(getattr(self, name))
        if self.out_proj_bias is not None:
            nn.init.zeros_(self.out_proj_bias)

    def extra_repr(self) -> str:
        return f"{self.embed_dim}, {self.num_heads}"

    def forward(
        self,
        query: torch.Tensor,
        key: torch.Tensor | None = None,
        value: torch.Tensor | None = None,
        key_padding_mask: torch.Tensor | None = None,
        need_weights: bool = True,
        attn_mask: torch.Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> Output:
        """The output, and the attention weights or None, as torch.nn.MultiheadAttention returns them.

        key and value are the same tensor as query, or left out. Masks: True, or −inf, hides. With is_causal a token
        sees itself and those before it, whether there is an attn_mask or not. The output of a token that
        key_padding_mask hides is that of an empty sequence: out_proj_bias, or zero.
        """
        if (key is not None and key is not query) or (value is not None and value is not query):
            raise InputError(
                f"key, value: {type(self).__name__} is attention of a sequence to itself; expected the same tensor as "
                "query, or None"
            )
        self._check_query(query)
        batched = query.dim() == 3
        x = query if batched else query[None]
        if batched and not self.batch_first:
            x = x.transpose(0, 1)
        samples, n = x.shape[0], x.shape[1]
        if key_padding_mask is not None and not batched and key_padding_mask.dim() == 1:
            key_padding_mask = key_padding_mask[None]
        if attn_mask is not None:
            attn_mask = self._broadcast(attn_mask, samples, n)
        if not _is_compiling():
            if attn_mask is not None:
                self._check_mask(attn_mask)
            if key_padding_mask is not None and key_padding_mask.is_floating_point():
                _check_padding(key_padding_mask)
        masks: dict[str, Any] = {
            "attn_mask": attn_mask,
            "is_causal": is_causal,
            "key_padding_mask": key_padding_mask,
            "dropout_p": self.dropout if self.training else 0.0,
            "need_weights": need_weights,
        }
        y, weights = self._attend(x, masks)
        if self.out_proj_bias is not None:
            y = y + self.out_proj_bias
        if weights is not None and average_attn_weights:
            weights = weights.mean(1)
        if not batched:
            return y[0], None if weights is None else weights[0]
        return y if self.batch_first else y.transpose(0, 1), weights

    def _attend(self, x: torch.Tensor, masks: dict[str, Any]) -> Output:
        """From [samples, n, d] to [samples, n, d] and the weights [samples, heads, n, n], without the output's bias."""
        raise NotImplementedError

    def _heads(self, z: torch.Tensor) -> torch.Tensor:
        """[samples, n, H·k] as [samples, H, n, k]."""
        return z.reshape(*z.shape[:-1], self.num_heads, self.head_dim).transpose(1, 2)

    def _check_query(self, query: Any) -> None:
        if not isinstance(query, torch.Tensor):
            raise InputError(f"query: expected a tensor, got {type(query).__name__}")
        if query.dim() not in (2, 3) or query.shape[-1] != self.embed_dim:
            order = "samples, n" if self.batch_first else "n, samples"
            raise InputError(
                f"query: shape {list(query.shape)}; expected [{order}, {self.embed_dim}] or [n, {self.embed_dim}]"
            )
        if 0 in query.shape:
            raise InputError(f"query: shape {list(query.shape)} holds no token")
        if not query.is_floating_point():
            raise InputError(f"query: {short_name(query.dtype)}; expected floating-point numbers")

    def _broadcast(self, mask: torch.Tensor, samples: int, n: int) -> torch.Tensor:
        """[n, n], [samples · heads, n, n] or [samples or 1, heads or 1, n, n], as four axes."""
        shape = list(mask.shape)
        if mask.dim() == 3 and shape[0] == samples * self.num_heads:
            mask = mask.reshape(samples, self.num_heads, *shape[1:])
        elif mask.dim() == 2:
            mask = mask[None, None]
        fits = mask.dim() == 4 and mask.shape[0] in (1, samples) and mask.shape[1] in (1, self.num_heads)
        if not fits or list(mask.shape[2:]) != [n, n]:
            raise InputError(
                f"attn_mask: shape {shape}; expected [{n}, {n}], [{samples * self.num_heads}, {n}, {n}] or "
                f"[{samples}, {self.num_heads}, {n}, {n}]"
            )
        return mask

    def _check_mask(self, attn_mask: torch.Tensor) -> None:
        """InputError for a mask under which the bounds of the kind do not hold."""

    # ---- its constant

    def lipschitz_bound(
        self, n: int, norm: str = "2", radius: float | None = None, *, mask: str = "any"
    ) -> torch.Tensor:
        """:func:`lipscope.torch.lipschitz_bound` of this module: sequences of n tokens, any padding among them."""
        return lipschitz_bound(self, n, norm, radius, mask=mask)

    def proved_bound(self, n: int, norm: str = "2", radius: float | None = None, *, mask: str = "any") -> Record:
        """:func:`lipscope.torch.proved_bound` of this module."""
        return proved_bound(self, n, norm, radius, mask=mask)

    def constant(self, over: Inputs) -> Constant:
        """What :func:`lipscope.torch.lipschitz_bound` asks for."""
        raise NotImplementedError

    def _weights(self) -> list[torch.Tensor]:
        """[H, k, d] of each projection, and [H, k, d] of the output from the right."""
        heads = (self.num_heads, self.head_dim)
        weights = [getattr(self, name) for name in self._projections()]
        return [w.reshape(*heads, -1) for w in (*weights, self.out_proj_weight.T)]

    def _shifted(self, radius: Number | None, over: Inputs) -> Number | None:
        """The radius with the bias."""
        if radius is None or self.out_proj_bias is None:
            return radius
        return radius + over.arithmetic.length(self.out_proj_bias)

    # ---- the same layer in C++

    def to_attention(self, mask: str = "none") -> Attention:
        """The layer as :class:`lipscope.Attention`, on copies of the weights in f64."""
        weights: dict[str, Any] = {name[0]: _from_right(getattr(self, name)) for name in self._projections()}
        bias: dict[str, Any] = {} if self.out_proj_bias is None else {"o_bias": _copied(self.out_proj_bias)}
        return Attention(
            **weights,
            o=_from_right(self.out_proj_weight),
            heads=self.num_heads,
            kind=self.kind,
            mask=mask,
            **bias,
            **self._scales(),
        )

    def _scales(self) -> dict[str, Any]:
        return {}

    @classmethod
    def from_attention(cls, layer: Attention, **options: Any) -> Self:
        """The layer with the weights of a :class:`lipscope.Attention`, in f64 unless ``dtype`` says otherwise."""
        if layer.kind != cls.kind:
            raise InputError(f"layer: kind {layer.kind!r}; {cls.__name__} is of kind {cls.kind!r}")
        if layer.key_heads != layer.heads:
            raise InputError(f"layer: {layer.key_heads} heads of keys for {layer.heads} of queries; expected as many")
        arrays = {name: torch.as_tensor(array).double() for name, array in layer.arrays().items()}
        d = layer.features
        arrays.setdefault("o", torch.eye(arrays["v"].shape[1], dtype=torch.float64))
        for name in ("q", "k", "v", "o"):
            if name in arrays and list(arrays[name].shape) != [d, d]:
                raise InputError(f"layer: {name} has the shape {list(arrays[name].shape)}; expected {[d, d]}")
        bias = cls._output_bias(arrays)
        options.setdefault("dtype", torch.float64)
        module = cls(d, layer.heads, bias=bias is not None, **cls._scales_of(layer), **options)
        with torch.no_grad():
            for name in (*module._projections(), "out_proj_weight"):
                getattr(module, name).copy_(arrays[name[0]].T)
            if bias is not None and module.out_proj_bias is not None:
                module.out_proj_bias.copy_(bias)
        return module

    @classmethod
    def _output_bias(cls, arrays: dict[str, torch.Tensor]) -> torch.Tensor | None:
        for name in ("q_bias", "k_bias", "v_bias"):
            if name in arrays:
                raise InputError(f"layer: has a {name}; {cls.__name__} has a bias of its output alone")
        return arrays.get("o_bias")

    @classmethod
    def _scales_of(cls, layer: Attention) -> dict[str, Any]:
        return {}


class L2SelfAttention(SelfAttention):
    """L2 self-attention [Kim21], which has a Lipschitz constant over all inputs, in place of nn.MultiheadAttention.

        y = Σ_h P_h x A_h W_V,h W_O,h (+ b),  P_h = softmax(−|q_i − q_j|²/√k),  q = x W_Q,h,  A_h = W_Q,h W_Q,hᵀ/√k

    Keys are the queries and the values pass A_h: without either it has no constant. A bias of queries would cancel,
    and one of values shift the output alone, so that ``bias`` is that of the output.

    The constant holds under every mask by which a token sees itself and prefers no other (a number of ``attn_mask``
    off the diagonal is not above the one on it). Other masks are refused, except inside torch.compile, where the
    numbers of a mask are not looked at.

    Weights, [out, in] as in torch.nn.Linear: ``q_proj_weight``, ``v_proj_weight``, ``out_proj_weight``, and
    ``out_proj_bias``.
    """

    kind = "l2"
    q_proj_weight: nn.Parameter
    v_proj_weight: nn.Parameter

    def _projections(self) -> tuple[str, ...]:
        return "q_proj_weight", "v_proj_weight"

    def reset_parameters(self) -> None:
        """New random weights: scores of unrelated tokens of unit variance begin near −1, and values as turned queries.

        With weights of the usual size tokens would see but themselves: their distance is 0, others' far larger.
        """
        k, q = self.head_dim, self.q_proj_weight
        orthogonal: Any = nn.init.orthogonal_  # without types in older releases
        dtype = torch.float32 if q.dtype in (torch.float16, torch.bfloat16) else q.dtype  # torch has no QR of halves

        def turn(size: int) -> torch.Tensor:
            found: torch.Tensor = orthogonal(torch.empty(size, size, dtype=dtype, device=q.device))
            return found

        with torch.no_grad():
            queries, turns = turn(self.embed_dim), torch.stack([turn(k) for _ in range(self.num_heads)])
            q.copy_(queries * (math.sqrt(0.5) * k**-0.25))
            values = turns @ queries.reshape(self.num_heads, k, -1)
            self.v_proj_weight.copy_(values.reshape_as(q) * math.sqrt(k))
            self.out_proj_weight.copy_(turn(self.embed_dim))
        if self.out_proj_bias is not None:
            nn.init.zeros_(self.out_proj_bias)

    def _attend(self, x: torch.Tensor, masks: dict[str, Any]) -> Output:
        q = self._heads(x @ self.q_proj_weight.T)
        mixed, weights = l2_attention(q, q, **masks)
        return mixed.transpose(1, 2).flatten(2) @ self._path(), weights

    def _path(self) -> torch.Tensor:
        """[H·k, d], since P x A_h W_V,h W_O,h = (P q)(W_Q,hᵀ W_V,h/√k W_O,h): what follows is weights alone."""
        q, v, o = self._weights()
        return (q @ v.transpose(1, 2) / math.sqrt(self.head_dim) @ o).flatten(0, 1)

    def constant(self, over: Inputs) -> Constant:
        found = self._undivided(over)
        return Constant(found.value, self._shifted(found.radius, over), found.by)

    def _undivided(self, over: Inputs) -> Constant:
        """Without the bias."""
        a = over.arithmetic
        q, v, o = self._weights()
        value, by = l2_constant(a, q, v, o, n=over.length_for(self), norm=over.norm, mask=over.mask)
        if over.radius is None:
            return Constant(value, None, by)
        # rows of P are means
        through = [a.norm(q[h]) * a.norm(q[h]) * a.product_norm(o[h].T, v[h]) for h in range(self.num_heads)]
        return Constant(value, sum(through[1:], through[0]) * over.radius * (ABOVE / math.sqrt(self.head_dim)), by)

    def _check_mask(self, attn_mask: torch.Tensor) -> None:
        own = attn_mask.diagonal(dim1=-2, dim2=-1)[..., None]
        prefers = own & ~attn_mask if attn_mask.dtype == torch.bool else attn_mask > own
        if bool(prefers.any()):
            i, j = prefers.nonzero()[0, -2:].tolist()
            raise InputError(
                f"attn_mask: token {i} prefers token {j} to itself; L2 attention is Lipschitz only where every token "
                "sees itself, and no other more"
            )

    @classmethod
    def _output_bias(cls, arrays: dict[str, torch.Tensor]) -> torch.Tensor | None:
        # b_Q cancels in distances, and rows of P sum to one
        bias = arrays.get("o_bias")
        if "v_bias" in arrays:
            shift = arrays["v_bias"] @ arrays["o"]
            bias = shift if bias is None else bias + shift
        return bias


class ContractiveL2SelfAttention(L2SelfAttention):
    """L2 self-attention divided by its own bound [Kim21], so that no two inputs are moved apart.

        f(x) = c F(x)/L(n),  Lip(F) ≤ L(n), and so Lip(f) ≤ c, in the norm that is named

    F is :class:`L2SelfAttention` and L(n) is computed from the weights at every call, with its gradient.

    Args:
        contraction: c.
        norm: In which f is contractive: "inf" as in the paper, "2" or "token".
        length: The n of L(n) where it is not to be the length of the input: the longest there will be.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = False,
        batch_first: bool = True,
        device: Any = None,
        dtype: torch.dtype | None = None,
        *,
        contraction: float = 1.0,
        norm: str = "inf",
        length: int | None = None,
    ) -> None:
        if not 0.0 < contraction < math.inf:
            raise InputError(f"contraction: {contraction}; expected a number above 0")
        if norm not in NORMS:
            raise InputError(f"norm: {norm!r}; expected '2', 'inf' or 'token'")
        if length is not None and (isinstance(length, bool) or not isinstance(length, int) or length < 1):
            raise InputError(f"length: {length!r}; expected a number of tokens, or None")
        super().__init__(embed_dim, num_heads, dropout, bias, batch_first, device, dtype)
        self.contraction, self.norm, self.length = contraction, norm, length

    def extra_repr(self) -> str:
        length = "" if self.length is None else f", length={self.length}"
        return f"{super().extra_repr()}, contraction={self.contraction}, norm={self.norm!r}{length}"

    def factor(self, n: int) -> torch.Tensor:
        """c/L(n), a little less, as the output of F is multiplied with it."""
        if self.length is not None and n > self.length:
            raise InputError(f"query: {n} tokens; the layer is contractive up to length {self.length}")
        q, v, o = self._weights()
        bound, _ = l2_constant(Differentiable(), q, v, o, n=self.length or n, norm=self.norm, mask="any")
        # each norm is a sum of d numbers, or a singular value, and rounded; a proof of it comes from above
        slack = 1.0 + 1e-9 + 8.0 * (self.embed_dim + 8) * torch.finfo(bound.dtype).eps
        # a map that is constant already is divided by nothing
        factor: torch.Tensor = self.contraction / torch.where(bound > 0, bound * slack, torch.ones_like(bound))
        return factor

    def _attend(self, x: torch.Tensor, masks: dict[str, Any]) -> Output:
        q = self._heads(x @ self.q_proj_weight.T)
        mixed, weights = l2_attention(q, q, **masks)
        path = self.factor(x.shape[1]).to(x.dtype) * self._path()
        return mixed.transpose(1, 2).flatten(2) @ path, weights

    def constant(self, over: Inputs) -> Constant:
        undivided = self._undivided(over)
        factor: Number = self.factor(over.length_for(self))
        if over.arithmetic.proves:
            factor = float(factor.detach())
        radius = None if undivided.radius is None else undivided.radius * factor
        return Constant(undivided.value * factor, self._shifted(radius, over), f"contractive({undivided.by})")

    def to_attention(self, mask: str = "none") -> Attention:
        """The undivided layer F: what it is divided by depends on the length."""
        return super().to_attention(mask)


class CosineSelfAttention(SelfAttention):
    """Scaled cosine self-attention [Qi23] with normalised values, Lipschitz over all inputs.

        y = [ν softmax(τ q̂ k̂ᵀ) v̂]_h W_O (+ b),  rows of q = xW_Q, k = xW_K and v = xW_V divided by √(|z|² + ε)

    With values as they are it would have no constant. Weights: ``q_proj_weight``, ``k_proj_weight``,
    ``v_proj_weight``, ``out_proj_weight``, [out, in] as in torch.nn.Linear, and ``out_proj_bias``.
    """

    kind = "cosine"
    q_proj_weight: nn.Parameter
    k_proj_weight: nn.Parameter
    v_proj_weight: nn.Parameter

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = False,
        batch_first: bool = True,
        device: Any = None,
        dtype: torch.dtype | None = None,
        *,
        tau: float = 10.0,
        nu: float = 1.0,
        epsilon: float = 1e-6,
    ) -> None:
        for name, number in (("tau", tau), ("nu", nu), ("epsilon", epsilon)):
            if not 0.0 < number < math.inf:
                raise InputError(f"{name}: {number}; expected a number above 0")
        super().__init__(embed_dim, num_heads, dropout, bias, batch_first, device, dtype)
        self.tau, self.nu, self.epsilon = tau, nu, epsilon

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, tau={self.tau}, nu={self.nu}, epsilon={self.epsilon}"

    def _attend(self, x: torch.Tensor, masks: dict[str, Any]) -> Output:
        q, k, v = (self._heads(x @ getattr(self, name).T) for name in self._projections())
        mixed, weights = cosine_attention(q, k, v, **self._scales(), **masks)
        return mixed.transpose(1, 2).flatten(2) @ self.out_proj_weight.T, weights

    def constant(self, over: Inputs) -> Constant:
        a = over.arithmetic
        q, k, v, o = self._weights()
        n = over.length_for(self)
        found = cosine_constant(a, q, k, v, o, **self._scales(), n=n, norm=over.norm, mask=over.mask)
        if found is None:
            raise over.refuse(self, "has no bound in the inf-norm; norm '2' and 'token' have one")
        # every head's output is a mean of rows shorter than ν
        radius = a.norm(self.out_proj_weight) * (self.nu * math.sqrt(self.num_heads) * ABOVE)
        return Constant(found[0], self._shifted(radius, over), found[1])

    def _scales(self) -> dict[str, Any]:
        return {"tau": self.tau, "nu": self.nu, "epsilon": self.epsilon}

    @classmethod
    def _scales_of(cls, layer: Attention) -> dict[str, Any]:
        return {"tau": layer.tau, "nu": layer.nu, "epsilon": layer.epsilon}


class SigmoidSelfAttention(SelfAttention):
    """Sigmoid self-attention [Ramapuram24], Lipschitz over every ball.

        y = [σ(q kᵀ/√k − log n) v]_h W_O (+ b)

    n is the number of tokens that are not padding. Weights: ``q_proj_weight``, ``k_proj_weight``, ``v_proj_weight``,
    ``out_proj_weight``, [out, in] as in torch.nn.Linear, and ``out_proj_bias``.
    """

    kind = "sigmoid"
    q_proj_weight: nn.Parameter
    k_proj_weight: nn.Parameter
    v_proj_weight: nn.Parameter

    def _attend(self, x: torch.Tensor, masks: dict[str, Any]) -> Output:
        q, k, v = (self._heads(x @ getattr(self, name).T) for name in self._projections())
        mixed, weights = sigmoid_attention(q, k, v, **masks)
        return mixed.transpose(1, 2).flatten(2) @ self.out_proj_weight.T, weights

    def constant(self, over: Inputs) -> Constant:
        if over.radius is None:
            raise over.refuse(self, "has no constant over all inputs; give radius")
        q, k, v, o = self._weights()
        found = sigmoid_constant(
            over.arithmetic, q, k, v, o, n=over.length_for(self), norm=over.norm, radius=over.radius
        )
        if found is None:
            raise over.refuse(self, "has no bound in the inf-norm; norm '2' and 'token' have one")
        # zero goes to zero, and the constant is one in the token norm
        return Constant(found[0], self._shifted(found[0] * over.radius, over), found[1])

    def _check_mask(self, attn_mask: torch.Tensor) -> None:
        if attn_mask.is_floating_point() and bool((attn_mask > 0).any()):
            raise InputError("attn_mask: has numbers above 0; the bound on sigmoid attention knows of no such mask")


def _check_padding(mask: torch.Tensor) -> None:
    if not bool(((mask == 0) | (mask == -math.inf)).all()):
        raise InputError("key_padding_mask: has numbers other than 0 and -inf; a token is padding or is not")


def _from_right(weight: torch.Tensor) -> torch.Tensor:
    """y = x Wᵀ in torch, y = x W in lipscope."""
    return _copied(weight).T


def _copied(weight: torch.Tensor) -> torch.Tensor:
    copy: torch.Tensor = weight.detach().cpu().double().clone()
    return copy


def _is_compiling() -> bool:
    compiler = getattr(torch, "compiler", None)
    return compiler is not None and hasattr(compiler, "is_compiling") and bool(compiler.is_compiling())
