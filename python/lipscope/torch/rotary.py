"""L2 self-attention with rotary positions: RotaryL2SelfAttention."""

from __future__ import annotations

from typing import Any

import torch

from lipscope.attention import Attention
from lipscope.errors import InputError
from lipscope.torch.attention import Output, l2_attention
from lipscope.torch.bound import Constant, Inputs
from lipscope.torch.self_attention import L2SelfAttention


class RotaryL2SelfAttention(L2SelfAttention):
    """Tied L2 attention between tokens that are turned by their positions, as in Llama.

    Position i turns the features of a head by an orthogonal matrix R_i. With y_i = x_i W_Q R_i,

        P_ij ∝ exp(−|y_i − y_j|²/√k),   f_i = Σ_j P_ij y_j R_iᵀ W_Qᵀ W_V/√k,

    so that A_h is W_Q R_j R_iᵀ W_Qᵀ/√k from token j to token i: the values are turned as well, and turned back at the
    token that reads them. Weights and outputs depend on the difference of positions alone, as with dot products.

    **Its constants in the 2-norm and in the token norm are those of L2 attention without positions.** The map is
    X ↦ Y = [x_i W_Q R_i]_i, then the attention g(Y)_i = Σ_j P_ij y_j that L2 attention has too, then R_iᵀ and the
    weights behind. Turning each token by an orthogonal matrix changes neither norm, and the bounds on L2 attention
    are products of a bound on g and of norms of what stands before and behind it.

    **The values must be turned.** With y_i = y_j for all tokens the weights are uniform, while values x_j A_h that are
    not turned lie as far apart as |x| is large: the derivative of the weights then moves the output by any amount, and
    there is no constant. In the inf-norm a rotation may stretch by √2; no bound is stated there.
    """

    def forward(  # type: ignore[override]
        self, query: torch.Tensor, *, positions: tuple[torch.Tensor, torch.Tensor], **masks: Any
    ) -> Output:
        """The output for x [samples, n, d], and None.

        positions: The cosines and sines of the angles, [samples or 1, n, k], as transformers' Llama makes them: feature
        f and feature f + k/2 of a head are turned together.
        """
        self._check_query(query)
        cos, sin = (p[:, None] for p in positions)
        q = _turned(self._heads(query @ self.q_proj_weight.T), cos, sin)
        mixed, _ = l2_attention(q, q, dropout_p=self.dropout if self.training else 0.0, **masks)
        y = _turned(mixed, cos, -sin).transpose(1, 2).flatten(2) @ self._path()
        return y if self.out_proj_bias is None else y + self.out_proj_bias, None

    def constant(self, over: Inputs) -> Constant:
        """What :func:`lipscope.torch.lipschitz_bound` asks for: that of L2 attention."""
        if over.norm == "inf":
            raise over.refuse(self, "has no bound in the inf-norm; norm '2' and 'token' have one")
        return super().constant(over)

    def to_attention(self, mask: str = "none") -> Attention:
        """Refused: lipscope.Attention has no positions."""
        raise InputError("RotaryL2SelfAttention: lipscope.Attention has no positions")


def _turned(z: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    half = z.shape[-1] // 2
    return z * cos + torch.cat([-z[..., half:], z[..., :half]], -1) * sin
