#pragma once

#include <optional>
#include <vector>

#include "lipscope/spectral/estimate.h"
#include "lipscope/transport/measure.h"

namespace lipscope {

/// How strongly attention F, as a map of measures, reacts at μ to first order,
/// in W₂ (under a mask, in the conditional distance of distance.h).
///
/// Where tokens move whole, by dx_j, it is ‖D^{1/2} J D^{−1/2}‖₂, see
/// weighted_map.h. A measure may also move by being cut: fragments of token i
/// with masses w_i m_f, Σ_f m_f = 1, may part. Write their moves as dx_i + g_f
/// with Σ_f m_f g_f = 0. To first order a token that looks at the fragments
/// feels Σ_f m_f(dx_i + g_f) = dx_i alone; a fragment itself moves by what
/// token i moves by and, in addition, by g_f B_i with its own query's part
///
///   B_i = Σ_h A_h Cov_i^h V_h     (tied L2: Σ_h 2 A_h Cov_i^h A_h V_h).
///
/// The two parts are orthogonal on both sides, Σ_f m_f ⟨dx_i, g_f⟩ = 0, so that
///
///   Lip_μ(F) = max( ‖D^{1/2} J D^{−1/2}‖₂, max_i ‖B_i‖₂ ),
///
/// and two halves moved by ±g, g the direction that B_i stretches most, are
/// enough. Outputs that coincide may be matched better than this does: then it
/// is an upper bound. Under a mask the same holds for fragments that share
/// their token's position: they see each other and are seen by the same tokens.
/// It is false where a token of a causal sequence is repeated at the next
/// position.
struct LocalConstant {
  Measurement moving;   ///< ‖D^{1/2} J D^{−1/2}‖₂; tokens move whole
  Matrix displacement;  ///< how tokens move for that, [n×d], Σ w_j|dx_j|² = 1

  std::vector<double> splitting_norms;  ///< ‖B_i‖₂ of each token, from below
  Index token = 0;                      ///< whose is largest
  Measurement splitting;  ///< ‖B_token‖₂; its direction is g, of length one
  /// max_i ‖B_i‖₂ from above, for certain or with high probability.
  std::optional<double> splitting_upper, splitting_upper_whp;

  /// Cutting a token does more than moving all of them.
  bool splits() const { return splitting.lower > moving.lower; }
  double lower() const;  ///< with splitting
  std::optional<double> upper() const, upper_whp() const;
  bool converged = false;  ///< all searches that decide
};

/// Each norm is measured as spectral/estimate.h says: found in f32, testified
/// in f64, from above where it is small enough to be formed. `delta` covers all
/// of them together. The options' mask and masses are those of the measure.
LocalConstant local_constant(const AttentionWeights& weights,
                             const AttentionOptions& options,
                             const Measure& measure,
                             const MeasureOptions& solver = {});

}  // namespace lipscope
