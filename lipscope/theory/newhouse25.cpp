#include "lipscope/theory/newhouse25.h"

#include <cmath>

#include "lipscope/core/errors.h"
#include "lipscope/model/stack.h"
#include "lipscope/theory/norms.h"

namespace lipscope {
namespace {

// between root mean squares: W [in×out]
double rms_norm(const Matrix& w) {
  return weight_norm_above(w) * std::sqrt(static_cast<double>(w.rows()) /
                                          static_cast<double>(w.cols()));
}

// ‖W_O‖‖W_V‖, where W_V has the third
double written(const AttentionWeights& w) {
  return rms_norm(w.output) * rms_norm(w.value);
}

}  // namespace

// Scores are over k there and over √k here, so that ‖W_Q‖‖W_K‖ has the root of
// k that is missing.
double newhouse25_attention(const AttentionWeights& w, double r) {
  const double compared = rms_norm(w.query) * rms_norm(w.key) *
                          std::sqrt(static_cast<double>(w.query_width()));
  return written(w) * (1.0 + 2.0 * r * r * compared);
}

double newhouse25_formula(const Stack& stack, double r) {
  require(stack.head.size() > 0 && !stack.last_norm && r > 0.0,
          "newhouse25_formula: a stack without a head, with a last norm, or "
          "tokens of {}",
          r);
  double L = 1.0;
  for (const LayerWeights& layer : stack.layers) {
    const AttentionWeights& w = layer.attention;
    require(layer.kind == Kind::dot && w.heads > 0 && !layer.position_heads &&
                layer.attention_norm.gain.size() == 0 &&
                layer.mlp_norm.gain.size() == 0 && layer.mlp.gate.size() == 0,
            "newhouse25_formula: a layer that is not dot-product attention "
            "and an MLP without norms");
    // the third is in W_V, and GELU's slope in W_down
    const double fed = rms_norm(layer.mlp.up) * rms_norm(layer.mlp.down);
    const double carry = layer.carry, share = layer.residual_scale;
    L *= carry + share * newhouse25_attention(w, r);
    r *= carry + share * written(w);
    L *= carry + share * fed;
    r *= carry + share * fed;
  }
  return L * rms_norm(stack.head);
}

}  // namespace lipscope
