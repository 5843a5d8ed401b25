#include "lipscope/theory/head_norms.h"

#include <algorithm>
#include <cmath>

#include "lipscope/core/errors.h"
#include "lipscope/theory/magnitude.h"
#include "lipscope/theory/norms.h"

namespace lipscope {
namespace {

// ΠΓW: what a weight matrix does to z
Matrix after_norm(const NormWeights& norm, const Matrix& w) {
  Matrix out = norm.gain.asDiagonal() * w;
  if (norm.kind == NormWeights::Kind::layer) {
    const Eigen::RowVectorXd mean = out.colwise().mean();
    out.rowwise() -= mean;
  }
  return out;
}

double root_of(Index k) { return std::sqrt(static_cast<double>(k)); }

Vector bias_of(const NormWeights& norm) {
  return norm.bias.size() == 0 ? Vector(Vector::Zero(norm.gain.size()))
                               : norm.bias;
}

ScoreSizes over_ball(const HeadWeights& h, const HeadNorms& norms, double R,
                     bool rope) {
  if (!rope) return sizes_over_ball(norms, R);
  const double q = weight_norm_above(h.query), k = weight_norm_above(h.key);
  const double long_q = q * R + length_above(h.query_bias);
  const double long_k = k * R + length_above(h.key_bias);
  const double root = root_of(h.query.cols());
  return {well_above(q * long_k * R / root), well_above(long_q * k * R / root),
          well_above(long_q * long_k / root)};
}

ScoreSizes after_norm_layer(const HeadWeights& h, const NormWeights& norm,
                            bool rope) {
  const double D = static_cast<double>(norm.gain.size()), root_d = std::sqrt(D);
  const double root = root_of(h.query.cols());
  const Matrix zq = after_norm(norm, h.query), zk = after_norm(norm, h.key);
  const double rho = root_d * norm.gain.cwiseAbs().maxCoeff();
  const Vector beta = bias_of(norm);
  // βW + b: the query, and key, of the token β
  const Vector q0 = h.query.transpose() * beta + h.query_bias;
  const Vector k0 = h.key.transpose() * beta + h.key_bias;

  if (rope) {
    const double q = weight_norm_above(h.query), k = weight_norm_above(h.key);
    const double long_q = root_d * weight_norm_above(zq) + length_above(q0);
    const double long_k = root_d * weight_norm_above(zk) + length_above(k0);
    return {well_above(q * long_k * rho / root),
            well_above(long_q * k * rho / root),
            well_above(long_q * long_k / root)};
  }
  // (βA + c) and (βA + c)ΓΠ through the d×k factors
  const double drift = length_above(h.key * q0) / root;
  const double drift_z = length_above(zk * q0) / root;
  const double spread =
      D * product_norm_above(zq, zk) / root + root_d * drift_z;
  const double pull =
      (root_d * product_norm_above(zq, h.key) / root + drift) * rho;
  const double diagonal = root_d * product_norm_above(h.query, zk) / root * rho;
  // the products with β are not norms and round both ways: 2⁻⁴⁰ covers them
  constexpr double room = 1.0 + 0x1p-40;
  return {well_above(diagonal), well_above(pull * room),
          well_above(spread * room)};
}

}  // namespace

ScoreSizes sizes_over_ball(const HeadNorms& norms, double R) {
  const double a = norms.score * R * R;
  const double biased = a + norms.score_bias * R;
  return {well_above(a), well_above(biased), well_above(biased)};
}

HeadNorms head_norms(const HeadWeights& h, const TokenSet& tokens, bool rope) {
  const double root = root_of(h.query.cols());
  HeadNorms norms;
  norms.score = well_above(product_norm_above(h.query, h.key) / root);
  norms.score_bias =
      well_above(length_above(h.key * h.query_bias) * (1.0 + 0x1p-40) / root);
  norms.value = weight_norm_above(h.value);
  norms.projected = h.output.size() == 0
                        ? norms.value
                        : product_norm_above(h.value, h.output.transpose());
  norms.sizes = over_ball(h, norms, tokens.radius, rope);
  if (tokens.norm) {
    const ScoreSizes other = after_norm_layer(h, *tokens.norm, rope);
    norms.sizes.diagonal = std::min(norms.sizes.diagonal, other.diagonal);
    norms.sizes.pull = std::min(norms.sizes.pull, other.pull);
    norms.sizes.spread = std::min(norms.sizes.spread, other.spread);
  }
  return norms;
}

}  // namespace lipscope
