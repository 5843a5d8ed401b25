#include "lipscope/theory/relative_positions.h"

#include <gtest/gtest.h>

#include "lipscope/attention/multi_head.h"
#include "lipscope/theory/attention_constants.h"
#include "lipscope/theory/bounds.h"
#include "lipscope/theory/column_sums.h"
#include "lipscope/theory/kim21.h"
#include "lipscope/theory/row_sums.h"
#include "tests/theory/cases.h"

namespace lipscope {
namespace relative_positions_test {

Vector numbers(std::initializer_list<double> all) {
  Vector v(static_cast<Index>(all.size()));
  std::copy(all.begin(), all.end(), v.begin());
  return v;
}

void expect_just_above(double found, double exact) {
  EXPECT_GE(found, exact * (1 - 1e-14));
  EXPECT_NEAR(found, exact, 1e-10 * exact);
}

TEST(RelativeColumnSums, IsTheFormulaWorkedByHand) {
  // e^{−2s} = ½; distances 0, 1, 2: 1, 1/(1 + ½·½), 1/(1 + ½(1 + 2))
  const ScoreSizes sizes{
      .diagonal = 0.5, .pull = 0.25, .spread = 0.5 * std::log(2.0)};
  expect_just_above(
      relative_column_sums(sizes, numbers({0, std::log(2.0), 0})).value(),
      0.5 + 1.25 * std::sqrt(1 + 0.8 + 0.4));
  // a number that is added to all does nothing
  expect_just_above(
      relative_column_sums(sizes, numbers({300, 300 + std::log(2.0), 300}))
          .value(),
      0.5 + 1.25 * std::sqrt(1 + 0.8 + 0.4));
}

TEST(RelativeColumnSums, IsNoMoreThanThatWithoutNumbers) {
  for (const double spread : {0.0, 0.3, 2.0})
    for (const Index n : {1, 2, 9, 64}) {
      const ScoreSizes sizes{.diagonal = 0.1, .pull = 0.2, .spread = spread};
      const double s =
          largest_column_sum(spread, n, Mask::causal).value() * (1 + 1e-10);
      EXPECT_LE(relative_column_sums(sizes, Vector::Zero(n)).value(),
                0.1 + 1.2 * std::sqrt(s));
    }
}

TEST(RelativeColumnSums, OfExtremeNumbersIsBetweenOneAndTheLength) {
  const ScoreSizes none;
  EXPECT_NEAR(relative_column_sums(none, numbers({1e6, 0, 0, 0})).value(), 1.0,
              1e-9);
  EXPECT_NEAR(relative_column_sums(none, numbers({0, 1e6, 2e6, 3e6})).value(),
              2.0, 1e-9);
  EXPECT_THROW(relative_column_sums(none, numbers({0, INFINITY})),
               std::invalid_argument);
}

// p = 1 where the masses sum to e²
TEST(RelativeL2, IsTheFormulaWorkedByHand) {
  const double b = 2 - std::log(2.0), m = std::exp(b);
  const Vector behind = numbers({0.7, 0.7 + b, 0.7 + b});
  expect_just_above(relative_phi_inverse(behind), 1.0);
  expect_just_above(relative_l2_token(behind).value(), 5.0);
  double d = 0.5;  // d e^{d+1} = m
  for (int i = 0; i < 100; ++i)
    d -= (d * std::exp(d + 1) - m) / ((d + 1) * std::exp(d + 1));
  expect_just_above(relative_l2_two(behind).value(),
                    2 + std::sqrt(1 + 2 * m / (1 + m)) + 2 * std::sqrt(2 * d));
}

TEST(RelativeL2, WithoutNumbersHasKim21sLemma) {
  for (const Index n : {1, 2, 5, 100}) {
    // both are rounded up, each in its own way
    EXPECT_NEAR(relative_phi_inverse(Vector::Zero(n)), kim21_phi_inverse(n),
                1e-10);
    EXPECT_NEAR(relative_l2_token(Vector::Zero(n)).value(),
                l2_row_sums(kim21_phi_inverse(n), 1).value(), 1e-9);
  }
  // far beyond what an exponential can say
  const double far = relative_phi_inverse(numbers({-1e4, 0, 0}));
  EXPECT_GT(far, 1e4 - 10);
  EXPECT_LE(far, 1e4 + 1);
  EXPECT_LT(relative_phi_inverse(numbers({1e4, 0, 0})), 1e-100);
}

TEST(RelativeL2, HasItsLemmaAttained) {
  const Rng rng(3);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Vector b = 2 * gaussian(5, 1, rng.split(seed));
    const double p = relative_phi_inverse(b);
    const auto mean = [&](const Vector& r) {
      double sum = 0.0, all = std::exp(b[0]);
      for (Index t = 1; t < 5; ++t) {
        sum += std::exp(b[t] - r[t]) * r[t];
        all += std::exp(b[t] - r[t]);
      }
      return sum / all;
    };
    EXPECT_NEAR(mean(Vector::Constant(5, p + 1)), p, 1e-9 * p);
    for (std::uint64_t i = 0; i < 50; ++i) {
      const Vector r = (p + 1) * gaussian(5, 1, rng.split(100 + i)).cwiseAbs();
      EXPECT_LE(mean(r), p);
    }
  }
}

// ---- what is false with numbers, and attacks

struct Layer {
  AttentionWeights weights;
  Kind kind = Kind::dot;
  RelativeBias bias;
};

MultiHeadAttention<double> map_of(const Layer& l) {
  return {l.weights,
          {.kind = l.kind, .mask = Mask::causal, .relative_bias = l.bias}};
}

double reached(const Layer& l, const Matrix& x, Norm norm) {
  const Matrix j = materialize(*map_of(l).linearize(x));
  return norm == Norm::two ? test::norm2(j)
                           : test::token_norm_below(j, x.rows(), Rng(1));
}

double bound_of(const Layer& l, Index n, double radius, Norm norm) {
  return magnitude_of(*best_bound(bounds(l.weights, {.kind = l.kind,
                                                     .mask = Mask::causal,
                                                     .n = n,
                                                     .radius = radius,
                                                     .relative_bias = l.bias}),
                                  norm))
      .value();
}

// everybody looks at the first token: the norm of P is √n, and not what scores
// that lie near each other allow
TEST(RelativeColumnSums, WithoutTheNumbersIsExceeded) {
  const Index n = 8;
  Layer l{.weights = {.query = 1e-3 * Matrix::Identity(1, 1),
                      .key = Matrix::Identity(1, 1),
                      .value = Matrix::Identity(1, 1)},
          .bias = {.table = Vector::LinSpaced(n, 0, 50 * (n - 1)),
                   .looks_back = true}};
  const double there = reached(l, Matrix::Constant(n, 1, 0.5), Norm::two);
  EXPECT_GT(there, 0.999 * std::sqrt(double(n)));
  EXPECT_LE(there, bound_of(l, n, 0.5, Norm::two));
  const ScoreSizes sizes{.diagonal = 1e-3, .pull = 1e-3, .spread = 1e-3};
  EXPECT_GT(there, 1.5 * column_sums_causal(sizes, n).value());
}

// a token between two others, which it looks at and not at itself
TEST(RelativeL2, WithoutTheNumbersIsExceeded) {
  Layer l{.weights = {.query = Matrix::Identity(1, 1),
                      .value = Matrix::Identity(1, 1)},
          .kind = Kind::l2,
          .bias = {.table = numbers({-20, 0, 0}), .looks_back = true}};
  const double p = relative_phi_inverse(l.bias.table.col(0));
  const double r = std::sqrt(p + 1);
  const Matrix x = (Matrix(3, 1) << -r, r, 0).finished();
  const double there = reached(l, x, Norm::token);
  EXPECT_LE(there, bound_of(l, 3, 1.0, Norm::token));
  EXPECT_GT(there, 0.95 * bound_of(l, 3, 1.0, Norm::token));
  EXPECT_GT(there, 5 * l2_row_sums(kim21_phi_inverse(3), 1).value());
  EXPECT_LE(reached(l, x, Norm::two), bound_of(l, 3, 1.0, Norm::two));
  EXPECT_GT(
      reached(l, x, Norm::two),
      2 * magnitude_of(*best_bound(bounds(l.weights, {.kind = Kind::l2,
                                                      .mask = Mask::causal,
                                                      .n = 3}),
                                   Norm::two))
              .value());
}

// Ascent over inputs and numbers at once, by what is reached over what is
// proved.
TEST(RelativePositions, AreNeverBoundedBelowWhatIsReached) {
  for (const Kind kind : {Kind::dot, Kind::l2})
    for (const Norm norm : {Norm::two, Norm::token}) {
      double nearest = 0.0;
      for (std::uint64_t seed = 0; seed < 12; ++seed) {
        const Rng rng(seed);
        const Index n = 2 + static_cast<Index>(seed % 3), d = 2, heads = 2;
        const double radius = std::exp(rng.split(1).normal());
        Layer l{.weights = {.query = gaussian(d, 2, rng.split(2)),
                            .value = gaussian(d, 2, rng.split(3)),
                            .output = gaussian(2, d, rng.split(4)),
                            .heads = heads},
                .kind = kind,
                .bias = {.table = gaussian(n, heads, rng.split(5)),
                         .looks_back = true}};
        if (kind == Kind::dot) l.weights.key = gaussian(d, 2, rng.split(6));
        if (seed % 2 == 0)  // heads apart
          l.weights.output = Matrix::Identity(2, d);
        const auto within = [&](Matrix y) {
          for (Index i = 0; i < y.rows(); ++i)
            y.row(i) *= std::min(1.0, radius / y.row(i).norm());
          return y;
        };
        Matrix x = within(radius * gaussian(n, d, rng.split(7)));
        double best = 0.0;
        for (std::uint64_t step = 0; step < 120; ++step) {
          const double size = 2 * std::pow(0.6, double(step % 9));
          Layer moved = l;
          moved.bias.table += size * gaussian(n, heads, rng.split(100 + step));
          const Matrix y = within(
              x + radius * size * gaussian(n, d, rng.split(1000 + step)));
          const double share =
              reached(moved, y, norm) / bound_of(moved, n, radius, norm);
          EXPECT_LE(share, 1.0)
              << name_of(kind) << " " << name_of(norm) << " seed " << seed;
          if (share <= best) continue;
          best = share;
          l = moved;
          x = y;
        }
        nearest = std::max(nearest, best);
      }
      EXPECT_GT(nearest, 0.5) << name_of(kind) << " " << name_of(norm);
      RecordProperty(name_of(kind) + ", " + name_of(norm),
                     std::to_string(nearest));
    }
}

TEST(RelativePositions, HaveTheSameConstantsWhereAChangeIsFollowed) {
  const Rng rng(4);
  for (const Kind kind : {Kind::dot, Kind::l2}) {
    Layer l{
        .weights = {.query = gaussian(3, 4, rng.split(1)),
                    .value = gaussian(3, 4, rng.split(2)),
                    .output = gaussian(4, 3, rng.split(3)),
                    .heads = 2},
        .kind = kind,
        .bias = {.table = gaussian(5, 2, rng.split(4)), .looks_back = true}};
    if (kind == Kind::dot) l.weights.key = gaussian(3, 4, rng.split(5));
    const auto gain = AttentionConstants(l.weights, kind, Mask::causal,
                                         {.relative_bias = l.bias})
                          .over(5, 0.3);
    ASSERT_TRUE(gain);
    const std::vector<Bound> all = bounds(l.weights, {.kind = kind,
                                                      .mask = Mask::causal,
                                                      .n = 5,
                                                      .radius = 0.3,
                                                      .relative_bias = l.bias});
    const auto named = [&](const std::string& name) {
      for (const Bound& b : all)
        if (b.name == name) return b.value;
      return 0.0;
    };
    const bool dot = kind == Kind::dot;
    EXPECT_NEAR(gain->token.value(),
                named(dot ? "row_sums" : "relative_l2_row_sums"), 1e-9);
    EXPECT_NEAR(gain->two.value(),
                named(dot ? "relative_column_sums" : "relative_l2"), 1e-9);
  }
}

// of tokens ahead nothing is said by numbers for tokens behind
TEST(RelativePositions, AreRefusedWhereTheySayNothing) {
  const Layer l{.weights = {.query = Matrix::Identity(2, 2),
                            .key = Matrix::Identity(2, 2),
                            .value = Matrix::Identity(2, 2)},
                .bias = {.table = Matrix::Zero(3, 1), .looks_back = true}};
  EXPECT_THROW(
      bounds(l.weights, {.n = 3, .radius = 1.0, .relative_bias = l.bias}),
      std::invalid_argument);
  EXPECT_THROW(MultiHeadAttention<double>(l.weights, {.relative_bias = l.bias}),
               std::invalid_argument);
  // buckets on both sides have bounds that any rows have
  const RelativeBias both{.table = Matrix::Zero(4, 1)};
  const std::vector<Bound> all =
      bounds(l.weights, {.n = 3, .radius = 1.0, .relative_bias = both});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_TRUE(best_bound(all, Norm::token));
  EXPECT_EQ(best_bound(all, Norm::two)->name, "castin24_ball");
}

}  // namespace relative_positions_test
}  // namespace lipscope
