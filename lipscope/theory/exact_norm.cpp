#include "lipscope/theory/exact_norm.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "lipscope/core/errors.h"
#include "lipscope/core/parallel.h"
#include "lipscope/core/rounding.h"
#include "lipscope/theory/gram_parts.h"
#include "lipscope/theory/norms.h"
#include "lipscope/theory/token_slopes.h"

namespace lipscope {
namespace {

// FᵀTF/scale², with `output` for F/scale
Matrix through_output(const Matrix& output, double scale, const Matrix& part) {
  if (output.size() == 0) return part / scale / scale;
  const Matrix half = part * output;
  return output.transpose() * half;
}

// G/scale², for a power of two
Matrix gram(GramParts& parts, Index n, double scale, int threads) {
  parts.prepare();
  const Matrix output = parts.output() / scale;
  std::vector<std::pair<Index, Index>> pairs;
  for (Index i = 0; i < n; ++i)
    for (Index other = 0; other <= i; ++other) pairs.emplace_back(i, other);
  const Index r = output.size() > 0 ? output.cols() : parts.part(0, 0).cols();
  Matrix g(n * r, n * r);
  parallel_for(static_cast<Index>(pairs.size()), threads, [&](Index number) {
    const auto [i, other] = pairs[number];
    const Matrix part = through_output(output, scale, parts.part(i, other));
    g.block(i * r, other * r, r, r) = part;
    if (i != other)
      g.block(other * r, i * r, r, r) = part.transpose();
    else  // a symmetric matrix but for rounding
      g.block(i * r, i * r, r, r).triangularView<Eigen::StrictlyUpper>() =
          part.transpose();
  });
  return g;
}

}  // namespace

const Statement exact_norm_statement{
    .name = "exact_norm",
    .norm = Norm::two,
    .mask = "any",
    .citation =
        "lipscope: the Gram matrix of J, in the coordinates of the heads, by a "
        "Cholesky factorisation, theory/exact_norm.h"};

Magnitude exact_norm(const LayerParts& l, const LayerAt& at) {
  GramParts parts(l, at);
  const double size = parts.size();
  require(std::isfinite(size), "certificate: numbers beyond double");
  const GramParts::Shares shares = parts.shares();
  const Magnitude rounding =
      Magnitude(size) * shares.all + slope_rounding(l, at);
  if (!parts.moderate()) return Magnitude(size) + rounding;
  const double scale = std::exp2(std::ceil(std::log2(size)));
  Matrix g = gram(parts, at.x.rows(), scale, l.threads);
  if (!g.allFinite()) return Magnitude(size) + rounding;
  const double relative = size / scale;
  const double lambda = large_eigenvalue_above(
      std::move(g), well_above(shares.sums * relative * relative), l.threads);
  const double proved = well_above(scale * std::sqrt(lambda));
  return smaller(proved, size) + rounding;
}

}  // namespace lipscope
