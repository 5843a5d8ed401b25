#include "lipscope/theory/l2_coordinates.h"

#include <cmath>

#include "lipscope/core/errors.h"
#include "lipscope/core/rounding.h"

namespace lipscope {
namespace {

// A product and what its rounding can have done, entry by entry: sums of m
// products err by at most γ_m = m u/(1 − m u) times the sum of sizes
// [Higham02], and `sizes` is that sum with room for its own rounding.
struct Rounded {
  Matrix value, sizes;
};

Rounded rounded(const Matrix& m) { return {m, m.cwiseAbs()}; }

Rounded operator*(const Rounded& a, const Rounded& b) {
  return {a.value * b.value, a.sizes * b.sizes};
}

// |the exact product| of factors with `terms` terms in all, entry by entry
Matrix size_above(const Rounded& r, Index terms) {
  const double gamma = 1.01 * static_cast<double>(terms + 4) * unit_roundoff;
  return (1.0 + 0x1p-40) * (r.value.cwiseAbs() + gamma * r.sizes);
}

}  // namespace

const Statement l2_coordinates_statement{
    .name = "l2_coordinates",
    .norm = Norm::inf,
    .mask = "any",
    .citation =
        "lipscope: Kim21's lemma for each coordinate of the output, proof in "
        "theory/l2_coordinates.h"};

Vector l2_coordinates(const std::vector<HeadWeights>& heads,
                      const std::vector<double>& p) {
  require(!heads.empty() && heads.size() == p.size(),
          "l2_coordinates: {} heads with {} numbers", heads.size(), p.size());
  const Index d = heads[0].query.rows(), k = heads[0].query.cols();
  const bool projected = heads[0].output.size() > 0;
  const Index own = heads[0].value.cols();
  const Index count = static_cast<Index>(heads.size());
  Vector c = Vector::Zero(projected ? heads[0].output.cols() : count * own);
  // a sum of m numbers ≥ 0 loses at most m u of itself
  const double slack =
      1.0 + 2.0 * unit_roundoff * static_cast<double>(d * d + c.size() + 64);
  for (Index h = 0; h < count; ++h) {
    const HeadWeights& one = heads[static_cast<std::size_t>(h)];
    const Rounded query = rounded(one.query);
    Rounded path = rounded(one.query.transpose()) * rounded(one.value);
    Index terms = d;
    if (projected) {
      path = path * rounded(one.output);
      terms += own;
    }
    const double compared = std::sqrt(
        size_above(query * rounded(one.query.transpose()), k).sum() * slack);
    const Vector lengths = size_above(path, terms).colwise().norm().transpose();
    const Vector through =
        size_above(query * path, terms + k).colwise().sum().transpose();
    auto written = c.segment(projected ? 0 : h * own, lengths.size());
    written +=
        slack *
        (4.0 * p[static_cast<std::size_t>(h)] * compared * lengths + through);
  }
  return c * (slack / std::sqrt(static_cast<double>(k)));
}

}  // namespace lipscope
