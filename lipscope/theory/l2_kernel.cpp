#include "lipscope/theory/l2_kernel.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

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

// Of the rows of P: s(z), from above, for all z from `z` to the next entry.
struct RowSpread {
  double z = 1.0, root_z = 1.0, spread = 0.0;
};

// For z = 1 + x up to n = m + 1, in steps of a share of z: m t ln(1/t) does not
// fall with z, so that it counts at the end of a step and 1/z at its beginning.
std::vector<RowSpread> row_spreads(double m) {
  std::vector<RowSpread> rows;
  for (double x = 0.0; x <= m;) {
    const double z = 1.0 + x, next = x + 0x1p-10 * z;
    const double t = std::min(next / m, std::exp(-1.0));
    rows.push_back({.z = z,
                    .root_z = std::sqrt(z),
                    .spread = well_above(m * t * std::log(1.0 / t) / z)});
    x = next;
  }
  return rows;
}

// what the mask makes of a column
struct Seen {
  double p;       // of the most tokens that one sees
  double others;  // as many, without itself
  double tokens;  // that see one
  double twice;   // c
};

Seen seen_under(const Mask& mask, Index n) {
  require(mask.padding_before == 0 && mask.padding_after == 0,
          "l2_kernel: nothing is proved for the mask \"{}\"", name_of(mask));
  const Index most = most_visible(mask, n);
  return {.p = kim21_phi_inverse(most),
          .others = static_cast<double>(most) - 1.0,
          .tokens = static_cast<double>(most_seeing(mask, n)),
          .twice = mask == Mask::none ? 1.0 : 2.0};
}

}  // namespace

const Statement l2_kernel_statement{
    .name = "l2_kernel",
    .norm = Norm::two,
    .mask = "any",
    .citation =
        "lipscope: column sums of a normalised Gaussian kernel, proof in "
        "theory/l2_kernel.h"};

Magnitude l2_kernel_by_columns(Index n, const Mask& given) {
  const Seen seen = seen_under(at_length(given, n), n);
  const double others = seen.tokens - 1.0;
  const double column = well_above(
      std::min(std::sqrt(seen.twice * seen.tokens), (seen.tokens + 1.0) / 2.0));
  const double weighted =
      weighted_column_sum(well_above(std::sqrt(seen.twice * others)), others);
  return root(column) + Magnitude(2.0) * root(Magnitude(seen.p) * weighted);
}

Magnitude l2_kernel_by_features(Index n, const Mask& given) {
  const Mask mask = at_length(given, n);
  const Seen seen = seen_under(mask, n);
  if (seen.others == 0.0) return 1.0;
  const std::vector<RowSpread> rows = row_spreads(seen.others);
  double least = std::numeric_limits<double>::infinity();
  for (double tau = 0.5; tau < 8.0; tau *= 1.05) {
    double over_root = 0.0, over_z = 0.0, alone = 0.0;
    for (const RowSpread& row : rows) {
      const double weight = 1.0 + 4.0 * row.spread / tau;
      over_root = std::max(over_root, weight / row.root_z);
      over_z = std::max(over_z, weight / row.z);
      alone = std::max(alone, weight);
    }
    if (mask.hides_later) over_root = std::sqrt(over_z * alone);
    least = std::min(least, std::sqrt(1.0 + tau * tau / 2.0) * over_root);
  }
  return root(well_above(least * std::sqrt(seen.twice * seen.tokens)));
}

Magnitude l2_kernel(Index n, const Mask& mask) {
  const Magnitude columns = l2_kernel_by_columns(n, mask),
                  features = l2_kernel_by_features(n, mask);
  const double p = kim21_phi_inverse(most_visible(at_length(mask, n), n));
  return Magnitude(p) * 2.0 + std::min(columns, features);
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
