#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lipscope/attention/query_key_norm.h"
#include "lipscope/attention/relative_bias.h"
#include "lipscope/theory/head_norms.h"
#include "lipscope/theory/layer_heads.h"

namespace lipscope {

/// What attention does to a change dX of n tokens, from above:
///
///   ‖dY‖_F ≤ two ‖dX‖_F,   max_i|dy_i| ≤ token max_j|dx_j|,
///   max_i|dy_i| ≤ row ‖dX‖_F
struct AttentionGain {
  Magnitude two, token, row;
};

/// What scores have beside q·k/√k.
struct ScoreForm {
  bool rope = false;  ///< q and k are rotated by position
  std::optional<QueryKeyNorm> query_key_norm = {};
  std::optional<RelativeBias> relative_bias = {};
};

/// The constants of one layer's attention over balls of any radius: norms of
/// weights are taken once, and asked many times.
///
///   dot        two: column_sums_causal or column_sums, under other masks
///              column_sums_masked; token, row: row_sums. (Row i of the line in
///              column_sums.h is at most a|dx_i| + (1 + g)(Σ_jP_ij|dx_j|²)^½ ≤
///              (1 + a + g)‖dX‖_F.)
///   l2         everywhere; two: l2_kernel; token: l2_row_sums; row: that
///              with the smaller factor of weights that l2_kernel has. (In
///              its notation, (Σ_hΣ_jP^h_ij|dy^h_j|²)^½ ≤ ‖dX W_Q k^{-1/4}‖_F
///              for the heads side by side, in place of max_j|dy^h_j| for
///              each.)
///   others     nothing is proved, nor for l2 with padding
///
/// Dot-product scores with rotary positions have the sizes of head_norms.h.
/// With q/k-norm, s_ij = q̂_i R_ij k̂_jᵀ/√k, where q̂ = γ ∘ z/√(|z|²/D + ε) of z =
/// xW_Q + b_Q (of one head, or of all): |q̂| ≤ √D max|γ| =: Q, and a change of x
/// by dx moves q̂ by at most max|γ| ε^{-1/2}‖W_Q‖|dx| =: L_Q|dx|; and so of k̂.
/// Since Σ_jP_ij|x_j − m_i| ≤ R over a ball of radius R,
///
///   spread Q K/√k,  pull Q L_K R/√k,  diagonal L_Q K R/√k.
///
/// What scores are otherwise does not enter the line in column_sums.h. With a
/// relative bias `two` is relative_column_sums under a causal mask and else a +
/// (1 + g)√m, where at most m tokens see one; of l2, under a causal mask alone,
/// relative_l2 and relative_l2_row_sums.
class AttentionConstants {
 public:
  /// Attention after its output projection.
  AttentionConstants(const AttentionWeights& weights, Kind kind,
                     const Mask& mask, const ScoreForm& form = {});

  /// Over sequences of n tokens of norm at most `radius`; nothing where nothing
  /// is proved.
  std::optional<AttentionGain> over(Index n, double radius) const;

  /// Of the bound that `token` is: "row_sums", "l2_row_sums"; empty where
  /// there is none.
  std::string name() const;

  /// Why nothing is proved; empty where something is.
  std::string why_nothing() const;

 private:
  // of scores that are no plain products: lengths of q and k are at most
  // slope·R + length, and a change of x moves them by `move` of it
  struct Projected {
    double slope = 0.0, length = 0.0, move = 0.0;
  };
  struct RotatedHead {
    Projected query, key;
    double root = 1.0;  // √k
  };

  static Projected projected(const Matrix& weight, const Vector& bias);
  static Projected normed(const Matrix& weight, const Vector& gain,
                          double epsilon);
  ScoreSizes sizes(std::size_t head, double radius) const;
  Magnitude in_two(std::size_t head, const ScoreSizes& sizes, Index n,
                   const Mask& mask) const;
  AttentionGain relative_l2(Index n) const;

  Kind kind_;
  Mask mask_;
  ScoreForm form_;
  LayerHeads layer_;  // without the heads themselves
  std::vector<HeadNorms> dot_;
  std::vector<RotatedHead> rotated_;  // empty for plain scores
  // k^{-1/2} l2_row_sums_weights; and k^{-1/2} (Σ_h ‖W_Q^h‖⁴‖W_V^h‖²)^{1/2}
  // ‖W_O‖, or l2_path_factor if smaller
  Magnitude l2_token_ = 0.0, l2_path_ = 0.0;
  // l2_path_factor of each head of l2 with a relative bias
  HeadBounds l2_heads_;
};

}  // namespace lipscope
