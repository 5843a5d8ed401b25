#include "lipscope/theory/mlp_bound.h"

#include "lipscope/core/errors.h"
#include "lipscope/theory/norms.h"

namespace lipscope {
namespace {

double largest_entry(const Vector& v) {
  return v.size() == 0 ? 0.0 : v.cwiseAbs().maxCoeff();
}

}  // namespace

Magnitude mlp_bound(double first, double second, Activation activation) {
  return Magnitude(first) * activation_slope(activation) * second;
}

Magnitude mlp_lipschitz(const MlpWeights& w, Norm norm) {
  require_sound(w);
  require(w.gate.size() == 0, "mlp_lipschitz: a gated MLP has no constant");
  require(norm == Norm::two || norm == Norm::inf, "mlp_lipschitz: norm {}",
          name_of(norm));
  if (norm == Norm::two)
    return mlp_bound(weight_norm_above(w.up), weight_norm_above(w.down),
                     w.activation);
  return mlp_bound(row_sum_above(w.up.transpose()),
                   row_sum_above(w.down.transpose()), w.activation);
}

MlpNorms mlp_norms(const MlpWeights& w) {
  require_sound(w);
  return {.up = weight_norm_above(w.up),
          .gate = weight_norm_above(w.gate),
          .down = weight_norm_above(w.down),
          .up_column = longest_row(w.up.transpose()),
          .gate_column = longest_row(w.gate.transpose()),
          .up_bias = largest_entry(w.up_bias),
          .gate_bias = largest_entry(w.gate_bias),
          .gated = w.gate.size() > 0,
          .activation = w.activation};
}

Magnitude mlp_above(const MlpNorms& m, double radius) {
  if (!m.gated) return mlp_bound(m.up, m.down, m.activation);
  const Magnitude R = radius;
  const Magnitude u = R * m.up_column + m.up_bias;
  const Magnitude g = R * m.gate_column + m.gate_bias;
  return (Magnitude(m.gate) * activation_slope(m.activation) * u +
          Magnitude(m.up) * g) *
         m.down;
}

}  // namespace lipscope
