#include "lipscope/theory/centred_slopes.h"

#include "lipscope/core/errors.h"
#include "lipscope/core/gemm.h"
#include "lipscope/core/rounding.h"
#include "lipscope/theory/norms.h"

namespace lipscope {

Magnitude centred_slopes(const MlpWeights& w, double carry, double share) {
  require_sound(w);
  require(w.gate.size() == 0 && w.activation != Activation::max_min,
          "centred_slopes: a gated MLP, or {}", name_of(w.activation));
  require(carry >= 0.0 && share >= 0.0 && w.up.rows() == w.down.cols(),
          "centred_slopes: {} x + {} f(x), f from {} features to {}", carry,
          share, w.up.rows(), w.down.cols());
  Matrix centre = product<double>(as_is(w.up), as_is(w.down), 1);
  centre *= 0.5 * share;
  centre.diagonal().array() += carry;
  // A sum of m products errs by at most m u/(1 − m u) of the products of
  // lengths [Higham02]; the factor and the diagonal round twice more. Twice
  // that covers the rounding of these lines.
  const double m = static_cast<double>(w.up.cols());
  const double error =
      2.0 * unit_roundoff *
      ((m + 4.0) * 0.5 * share * w.up.norm() * w.down.norm() + centre.norm());
  // L_act < 2: the difference is a double
  const double spread = activation_slope(w.activation) - 0.5;
  return Magnitude(weight_norm_above(centre)) + well_above(error) +
         Magnitude(share) * spread * weight_norm_above(w.up) *
             weight_norm_above(w.down);
}

}  // namespace lipscope
