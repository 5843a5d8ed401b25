#include "lipscope/theory/position_heads_bound.h"

#include "lipscope/core/errors.h"
#include "lipscope/core/rounding.h"
#include "lipscope/theory/norms.h"

namespace lipscope {
namespace {

// c_h s_h
Magnitude factor(const PositionHeads& heads, Index h) {
  Magnitude sum = 0.0;
  for (Index t = 0; t < heads.weights.rows(); ++t)
    sum = sum + heads.weights(t, h);
  return sum * heads.share[h];
}

// ‖[f_hV_h]_h‖ = ‖Σ_h f_h²V_hV_hᵀ‖^{1/2}, which grows with each f_h: c_h s_h
// may be taken from above. An entry is rounded once.
Magnitude side_by_side(const PositionHeads& heads) {
  Matrix all = heads.value;
  const Index k = heads.head_width();
  for (Index h = 0; h < heads.heads(); ++h)
    all.middleCols(h * k, k) *= factor(heads, h).value();
  return Magnitude(weight_norm_above(all)) +
         well_above(2.0 * unit_roundoff * all.norm());
}

}  // namespace

Magnitude position_heads_lipschitz(const PositionHeads& heads, Norm norm) {
  require_sound(heads);
  require(norm == Norm::two || norm == Norm::token,
          "position_heads_lipschitz: norm {}", name_of(norm));
  const Index k = heads.head_width();
  Magnitude squares = 0.0;
  for (Index h = 0; h < heads.heads(); ++h) {
    const Magnitude one =
        factor(heads, h) * weight_norm_above(heads.value.middleCols(h * k, k));
    squares = squares + one * one;
  }
  if (norm == Norm::token) return root(squares);
  return smaller(root(squares), side_by_side(heads));
}

}  // namespace lipscope
