#include "lipscope/theory/mlp_bound.h"

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
