#include "lipscope/theory/norm_layer_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lipscope/core/errors.h"
#include "lipscope/theory/norms.h"

namespace lipscope {
namespace {

double largest_gain(const NormWeights& norm) {
  require(norm.gain.size() > 0, "norm layer: no gain");
  return norm.gain.cwiseAbs().maxCoeff();
}

}  // namespace

double norm_layer_radius(const NormWeights& norm) {
  require(norm.gain.size() > 0, "norm layer: no gain");
  const double D = static_cast<double>(norm.gain.size());
  return well_above(std::sqrt(D) * norm.gain.cwiseAbs().maxCoeff() +
                    length_above(norm.bias));
}

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

double variance_below(const NormWeights& norm, const Vector& token) {
  const double D = static_cast<double>(token.size());
  Vector z = token;
  if (norm.kind == NormWeights::Kind::layer) z.array() -= z.mean();
  // the mean is good to a few units of |x|, and so is the variance of |x|²
  return std::max(0.0,
                  z.squaredNorm() / D - 0x1p-40 * (token.squaredNorm() / D));
}

Magnitude norm_layer_at(const NormWeights& norm, const Matrix& x) {
  require(x.rows() > 0, "norm layer: the sequence is empty");
  double least = std::numeric_limits<double>::infinity();
  for (Index i = 0; i < x.rows(); ++i)
    least = std::min(least, variance_below(norm, x.row(i)));
  return norm_layer_local(norm, least);
}

}  // namespace lipscope
