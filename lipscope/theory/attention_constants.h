#pragma once

#include <optional>
#include <string>
#include <vector>

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
class AttentionConstants {
 public:
  /// Attention after its output projection, without RoPE.
  AttentionConstants(const AttentionWeights& weights, Kind kind,
                     const Mask& mask);

  /// Over sequences of n tokens of norm at most `radius`; nothing where nothing
  /// is proved.
  std::optional<AttentionGain> over(Index n, double radius) const;

  /// Of the bound that `token` is: "row_sums", "l2_row_sums"; empty where
  /// there is none.
  std::string name() const;

 private:
  Kind kind_;
  Mask mask_;
  LayerHeads layer_;  // without the heads themselves
  std::vector<HeadNorms> dot_;
  // k^{-1/2} l2_row_sums_weights; and k^{-1/2} (Σ_h ‖W_Q^h‖⁴‖W_V^h‖²)^{1/2}
  // ‖W_O‖, or l2_path_factor if smaller
  Magnitude l2_token_ = 0.0, l2_path_ = 0.0;
};

}  // namespace lipscope
