#include "lipscope/spectral/golub_kahan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "lipscope/core/errors.h"
#include "lipscope/core/parallel.h"
#include "lipscope/operators/compose.h"
#include "tests/spectral/known_operators.h"
#include "tests/support/tolerance.h"

namespace lipscope {
namespace golub_kahan_test {

using test::DenseOperator;
using test::DiagonalOperator;
using test::with_singular_values;

// ‖AᵀA v − σ² v‖/σ² by hand
template <class Real>
double residual_of(const LinearOperator<Real>& a, const NormEstimate& e) {
  const VectorOf<Real> v = e.direction.cast<Real>();
  const Vector g = a.apply_adjoint(a.apply(v)).template cast<double>();
  return (g - e.value * e.value * e.direction).norm() / (e.value * e.value);
}

struct Spectrum {
  std::string name;
  Index rows, cols;
  Vector s;  // falling
};

Vector linear(Index count, double first, double last) {
  return Vector::LinSpaced(count, first, last);
}

Vector on_top_of(Vector rest, std::initializer_list<double> top) {
  Index i = 0;
  for (const double t : top) rest[i++] = t;
  return rest;
}

std::vector<Spectrum> spectra() {
  const Vector fall = linear(60, 0.9, 0.0);
  const double close = 1 - 1e-9;
  return {{"Linear", 60, 60, linear(60, 3, 0.05)},
          {"NearTop", 60, 60, on_top_of(fall, {1.0, 1 - 1e-3})},
          {"TouchingTop", 60, 60, on_top_of(fall, {1.0, close})},
          {"FivefoldTop", 60, 60, on_top_of(fall, {1, 1, 1, 1, 1})},
          {"Flat", 60, 60, Vector::Ones(60)},
          {"RankOne", 40, 50, Vector::Constant(1, 2.5)},
          {"OneByOne", 1, 1, Vector::Constant(1, 7.0)},
          {"Wide", 20, 90, linear(20, 2, 1)},
          {"Tall", 90, 20, linear(20, 2, 1)},
          {"OneColumn", 30, 1, Vector::Constant(1, 0.3)},
          {"Huge", 30, 30, 1e200 * linear(30, 1, 0)},
          {"Tiny", 30, 30, 1e-200 * linear(30, 1, 0)},
          {"TwelveDecades", 40, 40, linear(40, 0, -12).unaryExpr([](double x) {
             return std::pow(10.0, x);
           })}};
}

class GolubKahanOn : public testing::TestWithParam<Spectrum> {
 protected:
  const Matrix matrix =
      with_singular_values(GetParam().rows, GetParam().cols, GetParam().s);
  const DenseOperator<double> a{matrix};
  const double norm = GetParam().s[0];
};

INSTANTIATE_TEST_SUITE_P(Spectra, GolubKahanOn, testing::ValuesIn(spectra()),
                         [](const auto& p) { return p.param.name; });

TEST_P(GolubKahanOn, FindsTheLargestSingularValue) {
  // the error of σ is of the order of the square of the residual over the gap;
  // with a gap of 1e-9 the second value is as good an answer
  const NormEstimate e = golub_kahan(a, {.tolerance = 1e-9});
  EXPECT_NEAR(e.value / norm, 1.0, 1e-10) << e.steps << " steps";
  EXPECT_TRUE(e.converged) << "residual " << e.residual;
  EXPECT_LE(e.steps, GetParam().cols);
}

TEST_P(GolubKahanOn, ReachesRoundingWhenTheSpaceIsExhausted) {
  const NormEstimate e = golub_kahan(a, {.tolerance = 0.0});
  EXPECT_NEAR(e.value / norm, 1.0, 1e-13) << e.steps << " steps";
  EXPECT_LT(e.upper_factor, 1.02);
  EXPECT_GE(e.upper_factor * e.value, norm);
}

TEST_P(GolubKahanOn, ComesFromBelowEvenWhenCutShort) {
  for (int steps = 1; steps <= 12; ++steps) {
    const NormEstimate e =
        golub_kahan(a, {.tolerance = 0.0, .max_steps = steps});
    EXPECT_LE(e.value, norm * (1 + 1e-14)) << steps << " steps";
    EXPECT_NEAR((matrix / e.value * e.direction).norm(), 1.0, 1e-13);
    EXPECT_NEAR(e.direction.norm(), 1.0, 1e-14);
  }
}

TEST_P(GolubKahanOn, ReportsTheResidualThereIs) {
  for (int steps = 1; steps <= 12; ++steps) {
    // scaled so that the squares of the residual by hand stay finite
    const DenseOperator<double> unit(matrix / norm);
    const NormEstimate e =
        golub_kahan(unit, {.tolerance = 0.0, .max_steps = steps});
    const double by_hand = residual_of(unit, e);
    EXPECT_NEAR(e.residual, by_hand, 1e-13 + 1e-9 * by_hand)
        << steps << " steps";
  }
}

TEST_P(GolubKahanOn, EnclosesInFloatToo) {
  // an exhausted space in float says little at first; more starts say more
  const DenseOperator<float> single((matrix / norm).cast<float>());
  const NormEstimate e =
      golub_kahan(single, {.max_steps = 100, .enclose = 1.05});
  EXPECT_TRUE(e.converged) << e.steps << " steps, factor " << e.upper_factor;
  EXPECT_LE(e.upper_factor, 1.05);
  EXPECT_GE(e.upper_factor * e.value, 1.0 - 1e-6);
  EXPECT_NEAR(e.value, 1.0, 1e-5);
}

TEST(GolubKahan, IsTheBidiagonalFormWorkedByHand) {
  // A = diag(3, 1), v₁ = (1, 1)/√2: A v₁ = (3, 1)/√2, α₁ = √5, and
  // AᵀA v₁ = (9, 1)/√2 = 5 v₁ + 4 (1, −1)/√2, so α₁β₁ = 4 and y₁ = 1
  const DiagonalOperator<double> a(Vector{{3.0, 1.0}});
  const NormEstimate e =
      golub_kahan(a, {.max_steps = 1, .start = Vector{{2.0, 2.0}}});
  EXPECT_DOUBLE_EQ(e.value, std::sqrt(5.0));
  EXPECT_DOUBLE_EQ(e.residual, 4.0 / 5.0);
  EXPECT_EQ(e.steps, 1);
  EXPECT_FALSE(e.converged);
  EXPECT_EQ(e.upper_factor, std::numeric_limits<double>::infinity());
}

TEST(GolubKahan, OfTheZeroOperatorIsZero) {
  const DiagonalOperator<float> zero(Vector::Zero(30));
  const NormEstimate e = golub_kahan(zero, {.enclose = 1.01});
  EXPECT_EQ(e.value, 0.0);
  EXPECT_EQ(e.residual, 0.0);
  EXPECT_TRUE(e.converged);
  EXPECT_EQ(e.upper_factor * e.value, 0.0);
  EXPECT_NEAR(e.direction.norm(), 1.0, 1e-14);
}

// c₀ of the random start of seed 0, without a hint
double overlap_of_start(Index unknowns, double delta = 1e-10) {
  return start_overlap(gaussian(unknowns, 1, Rng(0).split(0)).norm(), delta);
}

template <class Real>
class GolubKahanIn : public testing::Test {};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(GolubKahanIn, Precisions);

TYPED_TEST(GolubKahanIn, SaysOfAnExhaustedSpaceWhatOneStartCanShow) {
  // the identity is exhausted after one step; a direction of larger gain may
  // have had a part of only c₀ in the start, under the rounding 32 u
  const NormEstimate e =
      golub_kahan(DiagonalOperator<TypeParam>(Vector::Ones(400)));
  const double unit = std::numeric_limits<TypeParam>::epsilon();
  EXPECT_EQ(e.steps, 1);
  EXPECT_TRUE(e.converged);
  EXPECT_NEAR(e.value, 1.0, 4 * unit);
  EXPECT_NEAR(e.upper_factor,
              std::sqrt(1.0 + 32 * unit / overlap_of_start(400)),
              1e-9 * e.upper_factor);
}

TYPED_TEST(GolubKahanIn, SaysMoreOfAnExhaustedSpaceAfterMoreStarts) {
  // S starts of one step each: m = S and a part of δ^{1/S}/(8 max(‖g‖, √N))
  const double unit = std::numeric_limits<TypeParam>::epsilon();
  const double asked = 1.0 + 1e5 * unit;
  const NormEstimate e = golub_kahan(
      DiagonalOperator<TypeParam>(Vector::Ones(400)), {.enclose = asked});
  const double longest =
      std::max(20.0, gaussian(400, 1, Rng(0).split(0)).norm());
  const auto factor = [&](int starts) {
    return std::sqrt(1.0 + 32 * unit * std::sqrt(double(starts)) * 8 * longest /
                               std::pow(1e-10, 1.0 / starts));
  };
  EXPECT_TRUE(e.converged);
  EXPECT_GT(e.steps, 1);
  EXPECT_NEAR(e.upper_factor, factor(e.steps), 1e-12);
  EXPECT_GT(factor(e.steps - 1), asked);
}

TEST(GolubKahan, FindsInFloatWhatFloatCanHold) {
  const Vector s = linear(300, 2, 0.01);
  const NormEstimate e = golub_kahan(DiagonalOperator<float>(s));
  EXPECT_TRUE(e.converged);
  EXPECT_NEAR(e.value, 2.0, 2.0 * test::rounding<float>(1));
}

TEST(GolubKahan, StaysOrthogonalWhereLanczosWouldForget) {
  // without reorthogonalisation an isolated top comes back as a copy of
  // itself, and the space never becomes the whole space
  const Index n = 120;
  const Vector s = on_top_of(linear(n, 0.1, 0.0), {1.0});
  const NormEstimate e = golub_kahan(
      DiagonalOperator<double>(s), {.tolerance = 0.0, .enclose = 1.0 + 1e-12});
  EXPECT_EQ(e.steps, n);
  EXPECT_NEAR(e.value, 1.0, 1e-14);
  EXPECT_LT(e.upper_factor, 1.0 + 1e-12);
}

TEST(GolubKahan, StopsWhenToldTo) {
  const DiagonalOperator<double> a(linear(200, 1, 0.9));
  std::vector<int> heard;
  const NormEstimate e =
      golub_kahan(a, {.tolerance = 0.0, .keep_going = [&](int step) {
                        heard.push_back(step);
                        return step < 5;
                      }});
  EXPECT_EQ(heard, (std::vector<int>{1, 2, 3, 4, 5}));
  EXPECT_EQ(e.steps, 5);
  EXPECT_FALSE(e.converged);
  EXPECT_GT(e.value, 0.9);
}

TEST(GolubKahan, GoesOnUntilTheEnclosureIsReached) {
  const DiagonalOperator<double> a(linear(400, 1, 0));
  const NormEstimate e = golub_kahan(a, {.tolerance = 1e-2, .enclose = 1.05});
  EXPECT_TRUE(e.converged);
  EXPECT_EQ(e.steps, steps_to_enclose(overlap_of_start(400), 1.05));
  EXPECT_LE(e.upper_factor, 1.05);
  EXPECT_LT(golub_kahan(a, {.tolerance = 1e-2}).steps, e.steps);
}

TYPED_TEST(GolubKahanIn, HasTheSameBitsForAnyNumberOfThreads) {
  // two blocks of several chunks each
  const Vector s = gaussian(2 * 50001, 1, Rng(5));
  const DiagonalOperator<TypeParam> a(s);
  GolubKahanOptions options{.tolerance = 0.0, .max_steps = 8, .threads = 1};
  const std::vector<NormEstimate> one = golub_kahan(a, 2, options);
  for (const int threads : {2, 3}) {
    options.threads = threads;
    const std::vector<NormEstimate> many = golub_kahan(a, 2, options);
    for (int b = 0; b < 2; ++b) {
      EXPECT_EQ(one[b].value, many[b].value);
      EXPECT_EQ(one[b].residual, many[b].residual);
      EXPECT_EQ(one[b].direction, many[b].direction);
    }
  }
}

TYPED_TEST(GolubKahanIn, RunsBlocksAsIfEachWereAlone) {
  // blocks that end at different steps: zero, rank one, wide spectra
  const Index n = 40;
  std::vector<Matrix> matrices{
      with_singular_values(30, n, linear(30, 1, 0)), Matrix::Zero(30, n),
      with_singular_values(30, n, Vector::Constant(1, 4.0)),
      with_singular_values(30, n, linear(30, 1, 0.9))};
  std::vector<OperatorPtr<TypeParam>> parts;
  for (const Matrix& m : matrices)
    parts.push_back(
        std::make_unique<DenseOperator<TypeParam>>(m.cast<TypeParam>()));
  const OperatorPtr<TypeParam> a = block_diagonal(std::move(parts));
  Vector starts(4 * n);
  for (int b = 0; b < 4; ++b)
    starts.segment(b * n, n) = random_direction(n, Rng(40).split(b));
  const GolubKahanOptions usual{.tolerance = 1e-4, .seed = 3};
  GolubKahanOptions enclosing = usual, tight = usual, given = usual;
  enclosing.enclose = 1.2;
  tight.memory = 9 * n * sizeof(TypeParam);
  given.start = starts;

  for (const GolubKahanOptions& how : {usual, enclosing, tight, given}) {
    const auto together = golub_kahan(*a, 4, how);
    for (int b = 0; b < 4; ++b) {
      const DenseOperator<TypeParam> part(matrices[b].cast<TypeParam>());
      GolubKahanOptions single = how;
      if (how.start.size() > 0) single.start = starts.segment(b * n, n);
      const NormEstimate alone = golub_kahan(part, single);
      EXPECT_EQ(together[b].value, alone.value) << "block " << b;
      EXPECT_EQ(together[b].residual, alone.residual) << "block " << b;
      EXPECT_EQ(together[b].steps, alone.steps) << "block " << b;
      EXPECT_EQ(together[b].direction, alone.direction) << "block " << b;
      EXPECT_EQ(together[b].upper_factor, alone.upper_factor) << "block " << b;
    }
    if (how.memory > 0) {
      EXPECT_GT(together[0].steps, 9);  // it did start again
    }
  }
}

TEST(GolubKahan, DrawsAStartForEachSeed) {
  const DiagonalOperator<double> a(linear(20, 2, 1).replicate(3, 1));
  const auto e =
      golub_kahan(a, 3, {.tolerance = 0.0, .max_steps = 3, .seeds = {7, 8, 7}});
  const DiagonalOperator<double> one(linear(20, 2, 1));
  EXPECT_EQ(
      e[1].value,
      golub_kahan(one, {.tolerance = 0.0, .max_steps = 3, .seed = 8}).value);
  EXPECT_EQ(e[0].value, e[2].value);
  EXPECT_NE(e[0].value, e[1].value);
  EXPECT_THROW(golub_kahan(a, 3, {.seeds = {1, 2}}), std::invalid_argument);
}

TEST(GolubKahan, RunsTheBlocksItIsToldTo) {
  const DiagonalOperator<double> a(linear(30, 2, 1));
  const auto all = golub_kahan(a, 3, {});
  const auto e = golub_kahan(a, 3, {.only = {1}});
  EXPECT_EQ(e[1].value, all[1].value);
  for (const int b : {0, 2}) {
    EXPECT_EQ(e[b].steps, 0);
    EXPECT_EQ(e[b].value, 0.0);
  }
  EXPECT_THROW(golub_kahan(a, 3, {.only = {3}}), std::invalid_argument);
}

TEST(VectorsWithin, AreAsManyAsFitAndAtLeastEight) {
  EXPECT_EQ(vectors_within<float>(4 * 100 * 12 + 399, 100), 12);
  EXPECT_EQ(vectors_within<double>(4 * 100 * 24, 100), 12);
  EXPECT_EQ(vectors_within<double>(1, 100), 8);
}

TEST(GolubKahan, LeavesABlockAloneThatStartsAtZero) {
  const DiagonalOperator<double> a(linear(20, 2, 1));
  Vector start = Vector::Zero(20);
  start.tail(10) = random_direction(10, Rng(1));
  const auto e = golub_kahan(a, 2, {.start = start});
  EXPECT_EQ(e[0].steps, 0);
  EXPECT_EQ(e[0].value, 0.0);
  EXPECT_NEAR(e[1].value, 2.0 - 10.0 / 19.0, 1e-9);
}

TEST(GolubKahan, StatesNoEnclosureFromAGivenStart) {
  // a start without a trace of the top: converged, and wrong
  const DiagonalOperator<double> a(Vector{{5.0, 1.0, 1.0}});
  const NormEstimate e = golub_kahan(a, {.start = Vector{{0.0, 1.0, 0.0}}});
  EXPECT_TRUE(e.converged);
  EXPECT_EQ(e.value, 1.0);
  EXPECT_EQ(e.upper_factor, std::numeric_limits<double>::infinity());
  EXPECT_THROW(
      golub_kahan(a, {.enclose = 1.1, .start = Vector{{0.0, 1.0, 0.0}}}),
      std::invalid_argument);
}

TEST(GolubKahan, StartsAgainFromItsBestWhenItsVectorsDoNotFit) {
  const Index n = 300;
  Vector s = Vector::LinSpaced(n, 0.98, 0.0);
  s[0] = 1.0;
  const test::DiagonalOperator<double> a(s);
  const GolubKahanOptions roomy{.tolerance = 1e-8, .max_steps = 2000};
  GolubKahanOptions tight = roomy;
  tight.memory = 12 * n * sizeof(double);
  const NormEstimate whole = golub_kahan(a, roomy);
  const NormEstimate cycles = golub_kahan(a, tight);
  EXPECT_TRUE(cycles.converged);
  EXPECT_NEAR(cycles.value, 1.0, 1e-12);
  EXPECT_LE(cycles.value, 1.0 + 1e-15);
  EXPECT_GT(cycles.steps, whole.steps);  // what room saves
  EXPECT_GT(whole.steps, 12);
  // only the first cycle, of twelve steps, had a random start
  EXPECT_EQ(cycles.upper_factor, enclosure_factor(overlap_of_start(n), 12));

  // an enclosure that the first cycle could not give is not waited for
  tight.enclose = 1.001;
  const NormEstimate asked = golub_kahan(a, tight);
  EXPECT_FALSE(asked.converged);
  EXPECT_LT(asked.steps, 2000);
  EXPECT_LE(asked.residual, tight.tolerance);
}

TEST(GolubKahan, HasItsBestDirectionWhereItEndsWithACycle) {
  const Index n = 60;
  const test::DiagonalOperator<double> a(linear(n, 1, 0.5));
  for (const int steps : {8, 16, 17, 40}) {
    const NormEstimate e = golub_kahan(
        a, {.tolerance = 0.0, .max_steps = steps, .memory = 8 * n * 8});
    EXPECT_EQ(e.steps, steps);
    EXPECT_NEAR(e.direction.norm(), 1.0, 1e-12);
    EXPECT_NEAR(a.apply(e.direction).norm(), e.value, 1e-12);
  }
}

TEST(GolubKahan, KeepsTheEnclosureOfItsFirstCycle) {
  const Index n = 300;
  Vector s = Vector::LinSpaced(n, 0.999, 0.0);
  s[0] = 1.0;
  const test::DiagonalOperator<double> a(s);
  const NormEstimate e = golub_kahan(
      a, {.tolerance = 1e-9, .max_steps = 500, .memory = 30 * n * 8});
  ASSERT_GT(e.steps, 30);
  EXPECT_EQ(e.upper_factor, enclosure_factor(overlap_of_start(n), 30));
  EXPECT_GE(e.upper_factor * e.value, 1.0);
}

TEST(GolubKahan, NeverReturnsWhatIsNotANumber) {
  Vector s = Vector::Ones(10);
  s[3] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(golub_kahan(DiagonalOperator<double>(s)), RunError);
  s[3] = std::numeric_limits<double>::infinity();
  EXPECT_THROW(golub_kahan(DiagonalOperator<float>(s)), RunError);
}

TEST(GolubKahan, RefusesOptionsThatMeanNothing) {
  const DiagonalOperator<double> a(Vector::Ones(10));
  EXPECT_THROW(golub_kahan(a, {.tolerance = -1.0}), std::invalid_argument);
  EXPECT_THROW(golub_kahan(a, {.max_steps = 0}), std::invalid_argument);
  EXPECT_THROW(golub_kahan(a, {.enclose = 1.0}), std::invalid_argument);
  EXPECT_THROW(golub_kahan(a, {.delta = 0.0}), std::invalid_argument);
  EXPECT_THROW(golub_kahan(a, {.start = Vector::Ones(9)}),
               std::invalid_argument);
  EXPECT_THROW(golub_kahan(a, 3, {}), std::invalid_argument);
}

TEST(GolubKahan, EnclosesFromAStartWithAHint) {
  const Index n = 200;
  const DiagonalOperator<double> a(linear(n, 1, 0.5));
  const Vector hint = 30.0 * Vector::Unit(n, 0);
  const NormEstimate e =
      golub_kahan(a, {.tolerance = 0.0, .max_steps = 9, .hint = hint});
  // nearer than without one, and stated from the length of the sum
  EXPECT_GT(e.value, golub_kahan(a, {.tolerance = 0.0, .max_steps = 9}).value);
  const Vector start = flatten(gaussian(n, 1, Rng(0).split(0))) + hint;
  EXPECT_EQ(e.upper_factor,
            enclosure_factor(start_overlap(start.norm(), 1e-10), 9));
  EXPECT_GE(e.upper_factor * e.value, 1.0);
}

TEST(GolubKahan, RefusesAHintThatIsNone) {
  const DiagonalOperator<double> a(Vector::Ones(10));
  EXPECT_THROW(golub_kahan(a, {.hint = Vector::Ones(9)}),
               std::invalid_argument);
  EXPECT_THROW(
      golub_kahan(a, {.hint = Vector::Ones(10), .start = Vector::Ones(10)}),
      std::invalid_argument);
  EXPECT_THROW(
      golub_kahan(a, {.hint = Vector::Constant(
                          10, std::numeric_limits<double>::quiet_NaN())}),
      std::invalid_argument);
}

}  // namespace golub_kahan_test
}  // namespace lipscope
