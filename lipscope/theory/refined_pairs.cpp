#include "lipscope/theory/refined_pairs.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "lipscope/attention/kinds.h"
#include "lipscope/core/rounding.h"
#include "lipscope/theory/exact_norm.h"
#include "lipscope/theory/magnitude.h"
#include "lipscope/theory/norms.h"
#include "lipscope/theory/token_pairs.h"
#include "lipscope/theory/token_slopes.h"

namespace lipscope {
namespace {

// how many norms may be made
Index most_norms(const LayerParts& l, Index n) {
  constexpr double most_work = 5e10;
  const double d = static_cast<double>(l.value.rows());
  const double e =
      static_cast<double>(l.projected ? l.output.cols() : l.heads * l.w);
  const double norms = most_work / (d * e * std::min(d, e));
  return std::max(n, static_cast<Index>(std::min(norms, 1e9)));
}

// value_ij, all pairs
Matrix value_parts_above(const LayerParts& l, const SplitWeights& split,
                         const LayerAt& at) {
  const Index n = at.x.rows();
  const Matrix slopes = value_slopes_above(l, at);
  const bool bend = !kind_of(l.options.kind).values_as_they_are;
  const double together = split.norm_value * split.norm_output;
  Matrix most = Matrix::Zero(n, n), sum = most;
  for (Index h = 0; h < l.heads; ++h) {
    const Matrix value = l.value.middleCols(h * l.w, l.w);
    // with a slope between them the two weights are no product
    const double alone =
        !l.projected ? weight_norm_above(value)
        : bend ? well_above(weight_norm_above(value) * split.head_output[h])
               : product_norm_above(
                     value, l.output.middleRows(h * l.w, l.w).transpose());
    const Matrix shares = at.p[h] * slopes.col(h).asDiagonal();
    most = most.cwiseMax(shares);
    sum += alone * shares;
  }
  return (together * most).cwiseMin(sum) * (1.0 + 1e-12);
}

// u and v of N, nearly
std::pair<Vector, Vector> leading(const Matrix& norms) {
  Vector u, v = Vector::Ones(norms.cols());
  for (int step = 0; step < 30; ++step) {
    u = norms * v;
    v = norms.transpose() * u;
    const double length = v.norm();
    if (!(length > 0.0)) break;
    v /= length;
  }
  const double length = u.norm();
  if (length > 0.0) u /= length;
  return {u, v};
}

struct Entry {
  Index i = 0, j = 0;
  double adds = 0.0;
};

}  // namespace

Matrix refined_pair_norms_above(const LayerParts& l, const SplitWeights& split,
                                const LayerAt& at, Index most) {
  if (l.plain && l.heads == 1) return token_pair_norms_above(l, at);
  const Index n = at.x.rows();
  Matrix norms = value_parts_above(l, split, at) +
                 key_path_norms_above(l, split, at, centres(l, at));
  norms.diagonal() += query_path_norms_above(l, split, at);
  norms *= 1.0 + 4 * unit_roundoff;

  std::vector<Entry> rough;  // those that are not exact yet
  for (Index i = 0; i < n; ++i)
    for (const Index j : acting_on(i, l.mask, n)) rough.push_back({i, j});
  const PairNorms pairs(l, at);
  Index left = most;
  const Index together = std::max(n / 2, left / 8) + 1;
  while (left > 0 && !rough.empty()) {
    const auto [u, v] = leading(norms);
    const double whole = u.dot(norms * v);
    double rest = 0.0;
    for (Entry& entry : rough) {
      entry.adds = u[entry.i] * norms(entry.i, entry.j) * v[entry.j];
      rest += entry.adds;
    }
    constexpr double enough = 0.01;
    if (!(rest > enough * whole)) break;
    const Index count =
        std::min({left, together, static_cast<Index>(rough.size())});
    // ties in the order of the tokens
    std::stable_sort(
        rough.begin(), rough.end(),
        [](const Entry& a, const Entry& b) { return a.adds > b.adds; });
    std::vector<std::vector<Index>> tokens(n);
    for (Index r = 0; r < count; ++r) tokens[rough[r].i].push_back(rough[r].j);
    Matrix exact = norms;
    pairs.set(tokens, exact);
    norms = norms.cwiseMin(exact);
    rough.erase(rough.begin(), rough.begin() + count);
    left -= count;
  }
  return norms;
}

const Statement refined_pairs_statement{
    .name = "refined_pairs",
    .norm = Norm::two,
    .mask = "any",
    .citation =
        "lipscope: norms of J between pairs of tokens, exact where they count, "
        "and of its rows, theory/refined_pairs.h"};

Magnitude refined_pairs(const LayerParts& l, const SplitWeights& split,
                        const LayerAt& at) {
  const Index n = at.x.rows();
  const Matrix pairs = refined_pair_norms_above(l, split, at, most_norms(l, n));
  // products of the numbers over the largest, so that nothing over- or
  // underflows that counts
  const Vector rows = row_norms_above(l, at);
  const double scale = std::max(pairs.maxCoeff(), 1e-300);
  const Matrix scaled = pairs / scale;
  const Vector scaled_rows = rows / scale;
  const double terms = static_cast<double>(n) + 4.0;
  const Matrix both = (scaled * scaled.transpose())
                          .cwiseMin(scaled_rows * scaled_rows.transpose()) *
                      (1.0 + 2 * terms * unit_roundoff);
  const double norm =
      std::min(nonnegative_norm_above(pairs),
               well_above(scale * std::sqrt(nonnegative_norm_above(both))));
  return smaller(Magnitude(norm) + slope_rounding(l, at),
                 split_paths(l, split, at));
}

}  // namespace lipscope
