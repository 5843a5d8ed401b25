#include "lipscope/search/constructions.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/attention/dense.h"
#include "lipscope/core/errors.h"
#include "tests/theory/cases.h"

namespace lipscope {
namespace constructions_test {

// a head with this score form and V = I
AttentionWeights head_with(const Matrix& A) {
  AttentionWeights w;
  w.query = A * std::sqrt(static_cast<double>(A.cols()));
  w.key = w.value = Matrix::Identity(A.rows(), A.cols());
  return w;
}

const Construction& named(const std::vector<Construction>& all,
                          const std::string& name) {
  for (const Construction& c : all)
    if (c.name == name) return c;
  throw RunError("no construction " + name);
}

double measured(const AttentionWeights& w, const AttentionOptions& o,
                const Construction& c) {
  const Matrix J = dense_jacobian(w, o, c.x);
  return c.norm == Norm::inf ? test::norm_inf(J) : test::norm2(J);
}

// √(n−1)·P(1 + 2(1−P)γR²), P = 1/(1 + (n−1)e^{−2γR²})
double growth_formula(double n, double gR2) {
  const double p = 1 / (1 + (n - 1) * std::exp(-2 * gR2));
  return std::sqrt(n - 1) * p * (1 + 2 * (1 - p) * gR2);
}

TEST(Constructions, GrowthHasTheNormsOfTheory) {
  const AttentionWeights w =
      head_with((Matrix(2, 2) << -0.5, 0, 0, -0.05).finished());
  const auto none = constructions(w, {}, ball(2), 20);
  const Construction& x = named(none, "growth");
  EXPECT_NEAR(measured(w, {}, x), 6.8825, 5e-5);
  EXPECT_NEAR(*x.predicted, growth_formula(20, 2), 1e-12);

  const AttentionOptions causal{.mask = Mask::causal};
  const auto masked = constructions(w, causal, ball(2), 20);
  EXPECT_NEAR(measured(w, causal, named(masked, "growth")), 6.0977, 5e-5);
  // Σ_i over what token i sees: i others and the special one
  double sum = 0;
  for (double i = 1; i < 20; ++i) {
    const double p = 1 / (1 + i * std::exp(-4.0));
    sum += std::pow(p * (1 + 4 * (1 - p)), 2);
  }
  EXPECT_NEAR(*named(masked, "growth").predicted, std::sqrt(sum), 1e-12);
}

TEST(Constructions, UnderAWindowGrowthIsWhereMostSeeIt) {
  const AttentionWeights w =
      head_with((Matrix(2, 2) << -0.5, 0, 0, -0.05).finished());
  // of 20 tokens the third is the first that five see; of its seers the first
  // sees three, the second four and the others five; γR² = 2
  const AttentionOptions window{.mask = {.window = 3}};
  const auto made = constructions(w, window, ball(2), 20);
  const Construction& x = named(made, "growth");
  EXPECT_NEAR(x.x(2, 0), -x.x(3, 0), 1e-12);
  EXPECT_NEAR(x.x(0, 0), x.x(3, 0), 1e-12);
  double sum = 0;
  for (const double others : {2, 3, 4, 4}) {
    const double p = 1 / (1 + others * std::exp(-4.0));
    sum += std::pow(p * (1 + 4 * (1 - p)), 2);
  }
  EXPECT_NEAR(*x.predicted, std::sqrt(sum), 1e-12);
  // padding ahead is seen by none: the token after it
  const AttentionOptions padded{.mask = {.padding_before = 4}};
  const auto behind = constructions(w, padded, ball(2), 20);
  const Construction& y = named(behind, "growth");
  EXPECT_NEAR(y.x(4, 0), -y.x(0, 0), 1e-12);
  const double p = 1 / (1 + 15 * std::exp(-4.0));
  EXPECT_NEAR(*y.predicted, std::sqrt(19.0) * p * (1 + 4 * (1 - p)), 1e-12);
}

TEST(Constructions, UnderAMaskPredictNoMoreThanIsMeasured) {
  int predicted = 0;
  double closest = 0.0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Rng dice(seed);
    const Index n = 3 + static_cast<Index>(dice.uniform() * 8);
    const AttentionOptions o{.mask = test::draw_mask(Kind::dot, n, dice)};
    AttentionWeights w;
    const Index d = 2 + static_cast<Index>(seed % 2);
    w.query = gaussian(d, d, Rng(seed).split(1));
    w.key = gaussian(d, d, Rng(seed).split(2));
    w.value = gaussian(d, d, Rng(seed).split(3));
    for (const Construction& c : constructions(w, o, ball(1.5), n)) {
      EXPECT_LE(c.x.rowwise().norm().maxCoeff(), 1.5 * (1 + 1e-12));
      if (!c.predicted) continue;
      const double reached = measured(w, o, c);
      EXPECT_LE(*c.predicted, reached * (1 + 1e-12))
          << c.name << ", " << name_of(o.mask) << " n " << n;
      closest = std::max(closest, *c.predicted / reached);
      ++predicted;
    }
  }
  EXPECT_GT(predicted, 200);
  EXPECT_GT(closest, 0.9);
}

TEST(Constructions, GrowthTakesTheSideThatTheConditionNames) {
  // λ_max = 0.9 > 8·0.1: R(u, u/2, …), γ = λ_max/8
  const AttentionWeights same =
      head_with((Matrix(2, 2) << 0.9, 0, 0, -0.1).finished());
  const auto one_side = constructions(same, {}, ball(3), 5);
  const Construction& halves = named(one_side, "growth");
  EXPECT_NEAR(std::abs(halves.x(0, 0)), 3, 1e-12);
  EXPECT_NEAR(halves.x(4, 0) / halves.x(0, 0), 0.5, 1e-12);
  EXPECT_NEAR(*halves.predicted, growth_formula(5, 9 * 0.9 / 8), 1e-12);

  // λ_max = 0.7 < 8·0.1: R(−u, u, …), γ = −λ_min
  const AttentionWeights other =
      head_with((Matrix(2, 2) << 0.7, 0, 0, -0.1).finished());
  const auto two_sides = constructions(other, {}, ball(3), 5);
  const Construction& opposite = named(two_sides, "growth");
  EXPECT_NEAR(opposite.x(4, 1) / opposite.x(0, 1), -1, 1e-12);
  EXPECT_NEAR(*opposite.predicted, growth_formula(5, 0.9), 1e-12);
}

// an antisymmetric part moves no eigenvalue of the symmetric one
TEST(Constructions, GrowthReadsTheSymmetricPart) {
  const AttentionWeights w =
      head_with((Matrix(2, 2) << -0.5, 7, -7, -0.05).finished());
  EXPECT_NEAR(*named(constructions(w, {}, ball(2), 20), "growth").predicted,
              growth_formula(20, 2), 1e-9);
}

// The limits are 3.07 and 13.0 at γR² = 1 and 2 over all masses, reached with
// masses 0.0690 and 0.00762
TEST(Constructions, TwoAtomsComeNearTheMeanFieldLimit) {
  for (const auto& [gR2, n, limit] :
       {std::tuple(1.0, 58, 3.0687), std::tuple(2.0, 131, 12.9963)}) {
    const AttentionWeights w = head_with(test::scalar(-gR2));
    double best = 0;
    for (const Construction& c : constructions(w, {}, ball(1), n))
      best = std::max(best, measured(w, {}, c));
    EXPECT_GT(best, 0.97 * limit) << gR2;
    EXPECT_LT(best, limit * (1 + 1e-4)) << gR2;
  }
}

TEST(Constructions, BalancedIsTheFormulaWorkedByHand) {
  // A = e1ᵀe2: t = 10 e1, w = 10 e2, and two tokens 10(cos e2 ± sin e1) with
  // cos = (ln 10 + 2)/100, so that P = 2/(2 + 8e^{−ln 10 − 2})
  const AttentionWeights w = head_with((Matrix(2, 2) << 0, 1, 0, 0).finished());
  const auto all = constructions(w, {}, ball(10), 10);
  const Construction& c = named(all, "balanced");
  const double cosine = (std::log(10.0) + 2) / 100;
  const double p = 2 / (2 + 0.8 * std::exp(-2.0));
  EXPECT_NEAR(*c.predicted,
              std::sqrt(8.0) * p * 100 * std::sqrt(1 - cosine * cosine) /
                  std::sqrt(2.0),
              1e-9);
  EXPECT_GE(measured(w, {}, c), *c.predicted);
}

// A = I: whoever looks along its own token looks at itself. Shorter ones do
// not: τ = 0.7, cos θ = 0.7 + (ln 10 + 2)/(0.7·10⁴), and a moves by τρ² sin
// θ/√2
TEST(Constructions, BalancedShortensTokensThatWouldLookAtThemselves) {
  const AttentionWeights w = head_with(Matrix::Identity(2, 2));
  const auto all = constructions(w, {}, ball(100), 10);
  const Construction& c = named(all, "balanced");
  const double cosine = 0.7 + (std::log(10.0) + 2) / 7000;
  const double p = 2 / (2 + 0.8 * std::exp(-2.0));
  EXPECT_NEAR(*c.predicted,
              std::sqrt(8.0) * p * 7000 * std::sqrt(1 - cosine * cosine) /
                  std::sqrt(2.0),
              1e-6);
  EXPECT_GE(measured(w, {}, c), *c.predicted);
}

TEST(Constructions, KimsHasTheRowSumOfTheClosedForm) {
  AttentionWeights w;
  w.query = w.value = test::scalar(1);
  const AttentionOptions o{.kind = Kind::l2};
  // 4p − 1 + 2/(p + 1) with p = W₀((n − 1)/e)
  for (const auto& [n, value] : {std::pair(3, 2.2192),
                                 {5, 3.0356},
                                 {9, 4.1408},
                                 {21, 6.0011},
                                 {51, 8.2260},
                                 {101, 10.0938}}) {
    const auto all = constructions(w, o, everywhere(), n);
    const Construction& c = named(all, "kim");
    EXPECT_NEAR(*c.predicted, value, 6e-5);
    EXPECT_NEAR(measured(w, o, c), *c.predicted, 1e-12 * value);
  }
  // the map is quadratic in W_Q and linear in W_V W_O
  w.query = test::scalar(3);
  w.value = test::scalar(-2);
  w.output = test::scalar(0.25);
  const auto scaled = constructions(w, o, everywhere(), 5);
  EXPECT_NEAR(*named(scaled, "kim").predicted, 9 * 0.5 * 3.0356, 5e-4);
  EXPECT_NEAR(measured(w, o, named(scaled, "kim")),
              *named(scaled, "kim").predicted, 1e-10);
}

// biases, masks, output projections, norm layers: what is predicted is there
TEST(Constructions, NoPredictionIsAboveWhatIsMeasured) {
  int predictions = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const test::Trial t = test::trial(Kind::dot, seed);
    AttentionOptions o = t.options;
    o.heads = {0};
    const Index d = t.weights.features(), n = 3 + seed % 6;
    const NormWeights norm{
        .gain = flatten(gaussian(1, d, Rng(seed).split(20))),
        .bias = flatten(gaussian(1, d, Rng(seed).split(21)))};
    const Region region =
        seed % 3 == 0 && d > 1 ? after_norm(norm) : ball(1 + seed % 4);
    for (const Construction& c : constructions(t.weights, o, region, n)) {
      EXPECT_LT((tokens_of(region, coordinates_of(region, c.x)) - c.x).norm(),
                1e-10 * (1 + c.x.norm()))
          << c.name << " leaves the region, seed " << seed;
      if (!c.predicted) continue;
      ++predictions;
      EXPECT_GE(measured(t.weights, o, c), *c.predicted * (1 - 1e-9))
          << c.name << ", seed " << seed;
    }
  }
  EXPECT_GT(predictions, 200);
}

TEST(Constructions, RefuseAnEmptySequence) {
  EXPECT_THROW(constructions(head_with(test::scalar(1)), {}, ball(1), 0),
               std::invalid_argument);
}

}  // namespace constructions_test
}  // namespace lipscope
