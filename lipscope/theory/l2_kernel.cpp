#include "lipscope/theory/l2_kernel.h"

#include <algorithm>
#include <cmath>

#include "lipscope/core/errors.h"
#include "lipscope/core/rounding.h"
#include "lipscope/theory/kim21.h"
#include "lipscope/theory/norms.h"

namespace lipscope {
namespace {

// the largest sum over the m others of g(t) = t ln(1/t − 1), the sum of t being
// at most `total`. g is largest, 0.2784646, at t* = 0.2178117
double weighted_column_sum(double total, double m) {
  if (m == 0) return 0.0;
  const double mean = total / m;
  return well_above(
      m * (mean < 0.2178 ? mean * std::log(1.0 / mean - 1.0) : 0.2784647));
}

}  // namespace

const Statement l2_kernel_statement{
    .name = "l2_kernel",
    .norm = Norm::two,
    .mask = "any",
    .citation =
        "lipscope: column sums of a normalised Gaussian kernel, proof in "
        "theory/l2_kernel.h"};

Magnitude l2_kernel(Index n, const Mask& given) {
  const Mask mask = at_length(given, n);
  require(mask.padding_before == 0 && mask.padding_after == 0,
          "l2_kernel: nothing is proved for the mask \"{}\"", name_of(mask));
  const double p = kim21_phi_inverse(most_visible(mask, n));
  const double tokens = static_cast<double>(most_seeing(mask, n));
  const double others = tokens - 1.0;
  const double twice = mask == Mask::none ? 1.0 : 2.0;
  const double column =
      well_above(std::min(std::sqrt(twice * tokens), (tokens + 1.0) / 2.0));
  const double weighted =
      weighted_column_sum(well_above(std::sqrt(twice * others)), others);
  return Magnitude(p) * 2.0 + root(column) +
         Magnitude(2.0) * root(Magnitude(p) * weighted);
}

L2PathNorms l2_path_norms(const std::vector<HeadWeights>& heads) {
  require(!heads.empty(), "l2_path_norms: no heads");
  const Index d = heads[0].query.rows(), k = heads[0].query.cols();
  const bool projected = heads[0].output.size() > 0;
  const Index wide = static_cast<Index>(heads.size()) * k;
  Matrix query(d, wide);
  Matrix path(projected ? wide : 0, projected ? heads[0].output.cols() : 0);
  L2PathNorms norms{.k = k};
  double apart = 0.0, error = 0.0;
  for (std::size_t h = 0; h < heads.size(); ++h) {
    const HeadWeights& one = heads[h];
    const Index at = static_cast<Index>(h) * k;
    Matrix u = one.query.transpose() * one.value;
    double sizes = one.query.norm() * one.value.norm();
    if (projected) {
      u = u * one.output;
      sizes *= one.output.norm();
    }
    const double ratio = u.norm() / one.query.norm();
    const double t =
        ratio > 0.0 && std::isfinite(ratio) ? std::sqrt(ratio) : 1.0;
    norms.balance.push_back(t);
    query.middleCols(at, k) = t * one.query;
    u /= t;
    // what the products round, in the Frobenius norm
    const double rounded = well_above(1.01 * (d + one.value.cols() + 6) *
                                      unit_roundoff * sizes / t);
    error = next_above(error + rounded);
    if (projected)
      path.middleRows(at, k) = u;
    else
      apart = std::max(apart, next_above(weight_norm_above(u) + rounded));
  }
  // t W_Q is rounded as well
  norms.query = well_above(weight_norm_above(query) + 0x1p-52 * query.norm());
  norms.path = projected ? next_above(weight_norm_above(path) + error) : apart;
  return norms;
}

Magnitude l2_path_factor(const L2PathNorms& norms) {
  const double root_k = std::sqrt(static_cast<double>(norms.k));
  return Magnitude(well_above(1.0 / root_k)) * norms.query * norms.path;
}

}  // namespace lipscope
