"""Attention on projected heads: L2 [Kim21], scaled cosine [Qi23] and sigmoid [Ramapuram24], as lipscope's C++ has them.

Tensors are [..., H, n, width]. Masks are those of :class:`torch.nn.MultiheadAttention`: True, or −inf, hides.

- ``attn_mask`` broadcasts to [..., H, n, n]; numbers are added to the scores.
- ``is_causal``: token i sees the tokens j ≤ i.
- ``key_padding_mask`` [..., n]: these tokens are no part of the sequence. Nobody sees them, their own output is zero.

Where no weights are asked for, torch's scaled_dot_product_attention computes the softmax kinds, by whichever kernel it
selects: distances become inner products by one more feature, so that fused kernels serve L2 attention too.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.nn import functional as F

from lipscope.errors import InputError
from lipscope.torch.widened import short_name

Output = tuple[torch.Tensor, "torch.Tensor | None"]

_FUSED = hasattr(F, "scaled_dot_product_attention") and "scale" in (F.scaled_dot_product_attention.__doc__ or "")


def l2_attention(
    q: torch.Tensor,
    v: torch.Tensor,
    *,
    attn_mask: torch.Tensor | None = None,
    is_causal: bool = False,
    key_padding_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    need_weights: bool = False,
) -> Output:
    """softmax(−|q_i − q_j|²/√k) v, and the weights if they are asked for.

    Queries and keys are one tensor q [..., H, n, k]. The map x ↦ output has a Lipschitz constant only if the values
    v [..., H, n, w] are x A_h W_V with A_h = W_Q W_Qᵀ/√k, and every token sees itself; the first is for the caller to
    see to (or :class:`L2SelfAttention`).
    """
    _check_heads(q, v)
    root = math.sqrt(q.shape[-1])
    # Distances do not feel a shift of all tokens, and what cancels in the scores becomes small. The first token is
    # seen by all under a causal mask: with the mean, the future would change the rounding of the past.
    q = q - q[..., :1, :].detach()
    # softmax does not feel −|q_i|²/√k, which is constant along a row:
    # −|q_i − q_j|²/√k ≡ ⟨(2q_i/√k, 1), (q_j, −|q_j|²/√k)⟩
    ones = torch.ones_like(q[..., :1])
    squares = _squares(q, -1.0 / root)
    queries = torch.cat([q * (2.0 / root), *[ones] * len(squares)], -1)
    keys = torch.cat([q, *squares], -1)
    return _softmax_attention(queries, keys, v, attn_mask, is_causal, key_padding_mask, dropout_p, need_weights)


def cosine_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    tau: float = 10.0,
    nu: float = 1.0,
    epsilon: float = 1e-6,
    attn_mask: torch.Tensor | None = None,
    is_causal: bool = False,
    key_padding_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    need_weights: bool = False,
) -> Output:
    """ν softmax(τ q̂ k̂ᵀ) v̂, and the weights if they are asked for: rows are divided by √(|z|² + ε), also of v."""
    _check_heads(q, v, k)
    q, k, v = (unit_rows(z, epsilon) for z in (q, k, v))
    return _softmax_attention(tau * q, k, nu * v, attn_mask, is_causal, key_padding_mask, dropout_p, need_weights)


def sigmoid_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    attn_mask: torch.Tensor | None = None,
    is_causal: bool = False,
    key_padding_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    need_weights: bool = False,
) -> Output:
    """σ(q kᵀ/√k − log n) v, and the weights if they are asked for.

    n counts the tokens of the sequence that are not padding, those that a causal mask hides too.
    """
    _check_heads(q, v, k)
    n = q.shape[-2]
    scores = (q / math.sqrt(q.shape[-1])) @ k.transpose(-1, -2)
    if key_padding_mask is None:
        scores = scores - math.log(max(n, 1))
    else:
        padded = _padded(key_padding_mask, q)
        count = (~padded).sum(-1).clamp(min=1).to(q.dtype)
        scores = scores - count.log()[..., None, None, None]
    hidden = _hidden(q, attn_mask, is_causal)
    if attn_mask is not None and attn_mask.is_floating_point():
        scores = scores + attn_mask.to(scores.dtype)
    weights = scores.sigmoid()
    if hidden is not None:
        weights = weights.masked_fill(hidden, 0.0)
    if key_padding_mask is not None:
        weights = weights.masked_fill(padded[..., None, None, :] | padded[..., None, :, None], 0.0)
    if dropout_p > 0.0:
        weights = F.dropout(weights, dropout_p)
    return weights @ v, weights if need_weights else None


def unit_rows(z: torch.Tensor, epsilon: float) -> torch.Tensor:
    """z/√(|z|² + ε), row by row."""
    return z * (z.square().sum(-1, keepdim=True) + epsilon).rsqrt()


def _squares(q: torch.Tensor, scale: float) -> list[torch.Tensor]:
    """|q|² scale, as one feature, or as two that add up to it where one has too few bits."""
    if q.dtype not in (torch.float16, torch.bfloat16):
        return [q.square().sum(-1, keepdim=True) * scale]
    exact = q.float().square().sum(-1, keepdim=True) * scale
    leading = exact.to(q.dtype)
    return [leading, (exact - leading).to(q.dtype)]


def _softmax_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    attn_mask: torch.Tensor | None,
    is_causal: bool,
    key_padding_mask: torch.Tensor | None,
    dropout_p: float,
    need_weights: bool,
) -> Output:
    """softmax(q kᵀ) v under the masks."""
    padded = None if key_padding_mask is None else _padded(key_padding_mask, q)
    if padded is not None:
        # one more feature, so that a causal kernel needs no mask of n × n numbers. It is finite: a row that sees only
        # padding must not become 0/0, even if nobody reads it.
        away = torch.zeros_like(k[..., :1])
        away = away.masked_fill(padded[..., None, :, None], torch.finfo(k.dtype).min / 4)
        q, k = torch.cat([q, torch.ones_like(away)], -1), torch.cat([k, away], -1)
    if _FUSED and not need_weights:
        out, weights = _fused(q, k, v, attn_mask, is_causal, dropout_p), None
    else:
        out, weights = _plain(q, k, v, attn_mask, is_causal, dropout_p)
    if padded is not None:
        out = out.masked_fill(padded[..., None, :, None], 0.0)
        weights = None if weights is None else weights.masked_fill(padded[..., None, :, None], 0.0)
    return out, weights if need_weights else None


def _fused(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, attn_mask: torch.Tensor | None, is_causal: bool, dropout_p: float
) -> torch.Tensor:
    # fused kernels want q, k and v of one width, on GPUs a multiple of 8
    values = v.shape[-1]
    step = 8 if q.is_cuda else 1
    width = -(-max(q.shape[-1], values) // step) * step
    q, k, v = (z if z.shape[-1] == width else F.pad(z, (0, width - z.shape[-1])) for z in (q, k, v))
    mask = attn_mask
    if attn_mask is not None:
        hidden = _hidden(q, attn_mask, is_causal)
        if attn_mask.is_floating_point():
            mask = attn_mask.to(q.dtype)
            mask = mask if hidden is None else mask.masked_fill(hidden, -math.inf)
        elif hidden is not None:
            mask = ~hidden  # True sees, there
        is_causal = False
    attend: Any = getattr(F, "scaled_dot_product_attention")  # noqa: B009  torch 1 has none
    out: torch.Tensor = attend(
        q, k, v, attn_mask=mask, dropout_p=dropout_p, is_causal=is_causal, scale=1.0
    )
    return out[..., :values]


def _plain(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, attn_mask: torch.Tensor | None, is_causal: bool, dropout_p: float
) -> tuple[torch.Tensor, torch.Tensor]:
    scores = q @ k.transpose(-1, -2)
    if attn_mask is not None and attn_mask.is_floating_point():
        scores = scores + attn_mask.to(scores.dtype)
    hidden = _hidden(q, attn_mask, is_causal)
    if hidden is not None:
        scores = scores.masked_fill_(hidden, -math.inf)
    weights = scores.softmax(-1)
    if dropout_p > 0.0:
        weights = F.dropout(weights, dropout_p)
    return weights @ v, weights


def _hidden(q: torch.Tensor, attn_mask: torch.Tensor | None, is_causal: bool) -> torch.Tensor | None:
    """What a mask of True and False, and causality, hide; None for nothing."""
    n = q.shape[-2]
    hidden = torch.ones(n, n, dtype=torch.bool, device=q.device).triu(1) if is_causal else None
    if attn_mask is None or attn_mask.is_floating_point():
        return hidden
    if attn_mask.dtype != torch.bool:
        raise InputError(f"attn_mask: {short_name(attn_mask.dtype)}; expected bool, or floating-point numbers")
    return attn_mask if hidden is None else attn_mask | hidden


def _padded(key_padding_mask: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """The mask as True and False; nn.TransformerEncoder makes numbers, 0 and −inf, of it."""
    expected = [*q.shape[:-3], q.shape[-2]]
    if list(key_padding_mask.shape) != expected:
        raise InputError(f"key_padding_mask: shape {list(key_padding_mask.shape)}; expected {expected}")
    if key_padding_mask.is_floating_point():
        return key_padding_mask == -math.inf
    if key_padding_mask.dtype != torch.bool:
        raise InputError(f"key_padding_mask: {short_name(key_padding_mask.dtype)}; expected bool, or 0 and -inf")
    return key_padding_mask


def _check_heads(q: torch.Tensor, v: torch.Tensor, k: torch.Tensor | None = None) -> None:
    for name, z in (("q", q), ("k", k), ("v", v)):
        if z is None:
            continue
        if not z.is_floating_point():
            raise InputError(f"{name}: {short_name(z.dtype)}; expected floating-point numbers")
        if z.dim() < 3 or z.shape[:-1] != q.shape[:-1]:
            raise InputError(f"{name}: shape {list(z.shape)}; expected [..., heads, n, width] alike in q, k and v")
        if z.dtype != q.dtype or z.device != q.device:
            q_is = f"{short_name(q.dtype)} on {q.device}"
            raise InputError(f"{name}: {short_name(z.dtype)} on {z.device}, and q is {q_is}")
    if k is not None and k.shape != q.shape:
        raise InputError(f"k: shape {list(k.shape)}; expected that of q, {list(q.shape)}")
