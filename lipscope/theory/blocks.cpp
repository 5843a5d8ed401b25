#include "lipscope/theory/blocks.h"

#include <cmath>

#include "lipscope/core/errors.h"

namespace lipscope {
namespace {

double largest_gain(const NormWeights& norm) {
  require(norm.gain.size() > 0, "norm layer: no gain");
  return norm.gain.cwiseAbs().maxCoeff();
}

}  // namespace

Magnitude norm_layer_everywhere(const NormWeights& norm) {
  return norm_layer_local(norm, 0.0);
}

Magnitude norm_layer_local(const NormWeights& norm, double variance) {
  require(variance >= 0.0, "norm layer: a variance of {}", variance);
  require(variance + norm.epsilon > 0.0,
          "norm layer: not Lipschitz where variance and epsilon are 0");
  return well_above(largest_gain(norm) / std::sqrt(variance + norm.epsilon));
}

Magnitude layer_norm_everywhere_inf(const NormWeights& norm) {
  require(norm.epsilon > 0.0, "norm layer: epsilon is {}", norm.epsilon);
  const double D = static_cast<double>(norm.gain.size());
  const double rows = 2.0 + std::pow(3.0, -1.5) * std::sqrt(D - 1.0);
  return well_above(rows * largest_gain(norm) / std::sqrt(norm.epsilon));
}

Magnitude mlp_bound(double first, double second, Activation activation) {
  return Magnitude(first) * activation_slope(activation) * second;
}

Magnitude residual_bound(Magnitude inner) { return Magnitude(1.0) + inner; }

Magnitude pre_norm_block(const BlockParts& p) {
  return residual_bound(p.attention * p.attention_norm) *
         residual_bound(p.mlp * p.mlp_norm);
}

Magnitude post_norm_block(const BlockParts& p) {
  return p.attention_norm * residual_bound(p.attention) * p.mlp_norm *
         residual_bound(p.mlp);
}

}  // namespace lipscope
