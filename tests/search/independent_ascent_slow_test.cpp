// An ascent that shares nothing with the library but the closed form of the
// Jacobian: random moves from many random starts, each kept if the norm grew.
// The search must not end below it.

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <string>

#include "lipscope/attention/dense.h"
#include "lipscope/core/rng.h"
#include "lipscope/search/search.h"
#include "tests/theory/cases.h"

namespace lipscope {
namespace independent_ascent_slow_test {

// tokens of one or two numbers: the best unit u is ±1, or an angle of a grid,
// which loses less than 1 − cos(π/360)
double token_norm_on_a_grid(const Matrix& j, Index n) {
  const Index e = j.rows() / n, d = j.cols() / n;
  double most = 0.0;
  for (Index i = 0; i < n; ++i)
    for (int angle = 0; angle < (e == 1 ? 1 : 180); ++angle) {
      const double a = angle * std::numbers::pi / 180;
      const Vector u =
          e == 1 ? Vector(Vector::Ones(1)) : Vector{{std::cos(a), std::sin(a)}};
      const Vector pulled = j.middleRows(i * e, e).transpose() * u;
      double sum = 0.0;
      for (Index t = 0; t < n; ++t) sum += pulled.segment(t * d, d).norm();
      most = std::max(most, sum);
    }
  return most;
}

double norm_of(const Matrix& j, Norm norm, Index n) {
  if (norm == Norm::inf) return j.cwiseAbs().rowwise().sum().maxCoeff();
  return norm == Norm::two ? test::norm2(j) : token_norm_on_a_grid(j, n);
}

Matrix into_ball(Matrix x, double radius) {
  for (Index i = 0; i < x.rows(); ++i)
    if (const double length = x.row(i).norm(); length > radius)
      x.row(i) *= radius / length;
  return x;
}

double climbed(const AttentionWeights& w, const AttentionOptions& o, Norm norm,
               Index n, double radius, std::uint64_t seed) {
  const Index d = w.features();
  const auto value = [&](const Matrix& x) {
    return norm_of(dense_jacobian(w, o, x), norm, n);
  };
  double most = 0.0;
  for (int start = 0; start < 24; ++start) {
    Rng rng = Rng(seed).split(start);
    const double size = radius * std::pow(10.0, -4.0 * rng.uniform());
    Matrix x = into_ball(size * gaussian(n, d, rng.split(0)), radius);
    double here = value(x), step = 0.5;
    for (int move = 1; move <= 250 && step > 1e-5; ++move) {
      const double length = x.rowwise().norm().maxCoeff();
      const Matrix next = into_ball(
          x + step * length * gaussian(n, d, rng.split(move)), radius);
      const double there = value(next);
      step *= there > here ? 1.7 : 0.85;
      if (there <= here) continue;
      x = next;
      here = there;
    }
    most = std::max(most, here);
  }
  return most;
}

TEST(Search, IsNeverBelowAnIndependentAscent) {
  int compared = 0;
  for (const Kind kind : all_kinds)
    for (const Norm norm : {Norm::two, Norm::inf, Norm::token})
      for (std::uint64_t seed = 0; seed < 4; ++seed) {
        const Index d = 1 + seed % 2, n = 2 + seed % 3;
        const Rng rng = Rng(100 + seed).split(static_cast<int>(kind));
        AttentionWeights w;
        w.heads = 1;
        w.query = gaussian(d, d, rng.split(0));
        if (kind != Kind::l2) w.key = gaussian(d, d, rng.split(1));
        w.value = gaussian(d, d, rng.split(2));
        AttentionOptions o{.kind = kind, .threads = 1};
        if (seed == 3) o.mask = Mask::causal;
        const double radius = seed % 2 == 0 ? 1.5 : 3.0;
        const SearchResult found =
            search(w, o, ball(radius), {.norm = norm, .n = n, .seed = seed});
        EXPECT_GE(found.best.value,
                  0.98 * climbed(w, o, norm, n, radius, 7 * seed))
            << name_of(kind) << ", norm " << name_of(norm) << ", seed " << seed
            << ", reached from " << found.reached << " of "
            << found.independent;
        ++compared;
      }
  EXPECT_EQ(compared, 60);
}

}  // namespace independent_ascent_slow_test
}  // namespace lipscope
