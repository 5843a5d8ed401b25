#pragma once

#include <vector>

#include "lipscope/theory/gram_parts.h"
#include "lipscope/theory/gram_triangle.h"

namespace lipscope {

/// What the products T_ii'L of all pairs of tokens share, where p_i and U of
/// gram_parts.h are the same for all j, in columns of L.
///
/// With ẑ_ij = P'_ij z_ij/τ_i and p̂_i = p_iτ_i/s, for powers of two τ_i^h with
/// ‖ẑ_i^h‖_F ≤ 1 and the scale s of the parts, rows h of T_ii'L/s² are
///
///   Σ_j ẑ_ij^hᵀ ( Σ_g (p̂_i^h·p̂_i'^g) Y_i'j^g + δ_ji' (E_i'ᵀp̂_i^h)ᵀL/s )
///     + Σ_g (Σ_j P^g_i'j ẑ_ij^h)ᵀ (û_i^hg L_g)/s
///     + Σ_g (û_i'^gh)ᵀ/s (Σ_j P^h_ij Y_i'j^g)
///     + Σ_g ((E_iᵀp̂_i'^g)_h/s) Y_i'i^g
///     + Σ_g (Σ_j P^h_ijP^g_i'j) W_V^hᵀW_V^gL_g/s²
///     + Σ_g P^g_i'i (E_iᵀU)_hg L_g/s²  +  P^h_ii' ((E_i'ᵀU)ᵀL)_h/s²
///
/// with Y_i^g = ẑ_i^gL_g, û_i^hg = p̂_i^hᵀU^g, L_g the rows of L of head g;
/// where i = i' there is E_iᵀE_iL beside them. T itself is never multiplied by
/// L: what is multiplied is made once for each token or for the layer, in f64,
/// and then cast to f32. L is lower triangular: in columns from c on heads
/// below c/w have no part.
///
/// Of (E_iᵀU)_hgL_g the products are in f32 as well. Sums of w terms err by at
/// most γ'‖X‖_F‖Y‖_F (gram_triangle.h); in units of the γ_m of gram_by_pieces.h
/// that is added to the size that is given for the piece.
struct TokenPieces {
  TokenPieces(const GramParts& parts, const LayerParts& l, const LayerAt& at,
              Index i, double scale);

  FloatMatrix steps;    ///< ẑ [n×H·w]
  FloatMatrix weights;  ///< P_i^h [H×n]
  Matrix pull;          ///< p̂ [H×d]
  Matrix value;         ///< û [H×H·w]
  Matrix query;         ///< p̂W_Q [H×H·k]
  Vector unit;          ///< τ^h
  Vector steps_size;    ///< ‖ẑ^h‖_F
  Vector weights_size;  ///< |P_i^h|
};

/// m of gram_by_pieces.h.
double roundings_on_the_way(Index n, Index heads);

/// Columns [first, first + cols) of what a token or the layer has with L.
struct PiecesBand {
  struct Token {
    FloatMatrix by_head;   ///< Y^g [H'×n·cols]
    FloatMatrix by_token;  ///< the same numbers [n×H'·cols]
    FloatMatrix own;       ///< (EᵀU)ᵀL/s² [H·w×cols]
    FloatMatrix later;     ///< (E_iᵀp̂_i'^h)ᵀL/s, a row for i' > i and h
    Vector steps_size;     ///< ‖Y^g‖_F [H']
    Matrix row_size;       ///< |Y_j^g| [n×H']
    Vector own_size;       ///< of each head
    Vector later_size;     ///< of each row
  };

  PiecesBand(const GramParts& parts, const LayerParts& l,
             const std::vector<TokenPieces>& tokens, const Matrix& triangle,
             double scale, Index first, Index cols);

  /// (E_iᵀU)_hgL_g/s², [w×cols] laid out as a row for each g after those of h:
  /// [H·H'×w·cols], and the sizes of these rows in `size` [H×H'].
  void own_by_heads(const Matrix& own, FloatMatrix& to, Matrix& size) const;
  /// û_i^hgL_g/s [H×H'·cols].
  Matrix values_of(const TokenPieces& token) const;

  Index first, cols;
  Index from;   ///< the first head with a part
  Index heads;  ///< H'
  std::vector<Token> token;
  std::vector<FloatMatrix> value;  ///< W_V^hᵀW_V^gL_g/s² for h [H'×w·cols]
  Matrix value_size;               ///< [H×H']

 private:
  Index w_;
  double scale_;
  double rough_;
  Matrix rows_;  // of L, those of head `from` first
  FloatMatrix float_rows_;
};

}  // namespace lipscope
