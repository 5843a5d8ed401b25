#include "lipscope/spectral/estimate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/core/errors.h"
#include "lipscope/operators/compose.h"
#include "lipscope/spectral/golub_kahan.h"
#include "tests/spectral/known_operators.h"

namespace lipscope {
namespace estimate_test {

using test::DenseOperator;
using test::LinearMap;
using test::with_singular_values;

// A sequence of 20 tokens with 6 features, and no dense SVD for it.
const Matrix x = gaussian(20, 6, Rng(1));
constexpr Index n = 120;
constexpr Index always_iterate = 0;

Vector spectrum() {
  Vector s = Vector::LinSpaced(n, 0.9, 0.0);
  s[0] = 1.0;
  return s;
}

struct Pair {
  LinearMap<float> search;
  LinearMap<double> witness;

  // The f32 map is that of `seen`, the f64 map that of `is`.
  Pair(const Matrix& seen, const Matrix& is)
      : search(seen.cast<float>()), witness(is) {}
  explicit Pair(const Matrix& a) : Pair(a, a) {}

  Measurement measure(MeasureOptions options) const {
    return measure_norm(search, witness, x, options);
  }
};

// residual and value of the witness by hand
void expect_testimony(const Matrix& j, const Measurement& m) {
  EXPECT_NEAR(m.direction.norm(), 1.0, 1e-12);
  EXPECT_NEAR((j * m.direction).norm(), m.lower, 1e-13 * m.lower);
  ASSERT_EQ(m.image.size(), j.rows());
  EXPECT_LE((j * m.direction - m.image).norm(), 1e-13 * m.lower);
  const Vector g = j.transpose() * (j * m.direction);
  EXPECT_NEAR(
      (g - m.lower * m.lower * m.direction).norm() / (m.lower * m.lower),
      m.residual, 1e-12);
}

// What is known beforehand of where to look is used, but not believed.
TEST(MeasureNorm, StartsNearACommonShift) {
  const Matrix j = with_singular_values(n, n, spectrum());
  const Matrix right = test::orthonormal(n, n, Rng(72));
  const auto steps_from = [&](const Vector& likely, double enclose) {
    const LinearMap<float> search(j.cast<float>());
    const LinearMap<double> witness(j);
    MeasureOptions options{
        .tolerance = 1e-5, .enclose = enclose, .dense_limit = always_iterate};
    if (likely.size() > 0)  // one unknown, each entry of x moved by its share
      options.common_shift = [&](const LinearOperator<float>&,
                                 const MatrixOf<float>&) {
        return CommonShift<float>{
            std::make_unique<DenseOperator<float>>(MatrixOf<float>::Ones(1, 1)),
            likely.cast<float>()};
      };
    const Measurement m = measure_norm(search, witness, x, options);
    EXPECT_TRUE(m.converged);
    EXPECT_NEAR(m.lower, 1.0, 1e-9);
    EXPECT_GE(m.upper_whp.value(), 1.0);
    return m.steps;
  };
  const int blind = steps_from({}, 0.0);
  EXPECT_LT(steps_from(right.col(0), 0.0), blind);
  // a wrong idea costs steps, not the answer
  EXPECT_LT(steps_from(right.col(n - 1), 0.0), 2 * blind);
  EXPECT_LT(steps_from(right.col(1), 0.0), 2 * blind);
  // an enclosure takes no more steps for the length that the hint adds, or one
  EXPECT_LE(steps_from(right.col(0), 1.5), steps_from({}, 1.5) + 1);
}

TEST(MeasureNorm, DecomposesSmallJacobians) {
  const Matrix j = with_singular_values(n, n, spectrum());
  const Measurement m = Pair(j).measure({.enclose = 1.01});
  EXPECT_EQ(m.lower_by, NormMethod::dense_gram);
  EXPECT_NEAR(m.lower, 1.0, 1e-13);
  EXPECT_GE(m.upper.value(), 1.0);
  EXPECT_NEAR(m.upper.value(), 1.0 + 1e-9, 1e-12);
  EXPECT_EQ(m.upper_whp, m.upper);
  EXPECT_EQ(m.steps, n);
  EXPECT_TRUE(m.converged);
  expect_testimony(j, m);
}

TEST(MeasureNorm, SearchesInF32AndTestifiesInF64) {
  const Matrix j = with_singular_values(n, n, spectrum());
  const Measurement m = Pair(j).measure({.dense_limit = always_iterate});
  EXPECT_EQ(m.lower_by, NormMethod::golub_kahan_f32);
  EXPECT_NEAR(m.lower, 1.0, 1e-8);
  EXPECT_LE(m.lower, 1.0 + 1e-14);
  EXPECT_LE(m.residual, 1e-5);
  EXPECT_TRUE(m.converged);
  EXPECT_FALSE(m.upper.has_value());
  EXPECT_EQ(m.delta, 1e-10);
  expect_testimony(j, m);
}

TEST(MeasureNorm, EnclosesAsCloselyAsAsked) {
  const Matrix j = with_singular_values(n, n, spectrum());
  for (const double enclose : {1.5, 1.1}) {
    const Measurement m =
        Pair(j).measure({.enclose = enclose, .dense_limit = always_iterate});
    EXPECT_EQ(m.lower_by, NormMethod::golub_kahan_f32);
    EXPECT_TRUE(m.converged);
    EXPECT_GE(m.upper_whp.value(), 1.0);
    EXPECT_LE(m.upper_whp.value(), enclose * m.lower);
  }
}

TEST(MeasureNorm, SaysSomethingFromAboveAfterEveryStep) {
  const Matrix j = with_singular_values(n, n, spectrum());
  double last = std::numeric_limits<double>::infinity();
  for (const int steps : {1, 2, 4, 8}) {
    const Measurement m = Pair(j).measure(
        {.max_steps = steps, .enclose = 1.5, .dense_limit = always_iterate});
    EXPECT_GE(m.upper_whp.value(), 1.0);
    EXPECT_LT(m.upper_whp.value(), last);
    EXPECT_FALSE(m.converged);
    // f64 goes on from what f32 found; it could not enclose in so few steps
    // either, and does not try
    EXPECT_LE(m.steps, 2 * steps);
    last = m.upper_whp.value();
  }
}

TEST(MeasureNorm, SpendsNothingOnWhatIsNotAskedFor) {
  const Matrix j = with_singular_values(n, n, spectrum());
  const Measurement both = Pair(j).measure({.dense_limit = always_iterate});
  const Measurement below =
      Pair(j).measure({.from_above = false, .dense_limit = always_iterate});
  EXPECT_TRUE(both.upper_whp.has_value());
  EXPECT_FALSE(below.upper_whp.has_value());
  EXPECT_EQ(below.lower, both.lower);
  EXPECT_THROW(Pair(j).measure({.enclose = 1.1, .from_above = false}),
               std::invalid_argument);
}

TEST(MeasureNorm, BoundsTheJacobianAndNotItsShadowInF32) {
  // J = J̃ + 3 a bᵀ, and f32 has no trace of the second term: its direction is
  // a singular vector of J too, so residual and value in f64 look innocent
  const Matrix q = test::orthonormal(n, n, Rng(5));
  Vector s = spectrum();
  s[n - 1] = 0.0;
  const Matrix seen = q * s.asDiagonal() * q.transpose();
  const Matrix hidden = q.col(n - 1) * q.col(n - 1).transpose();
  const Matrix j = seen + 3.0 * hidden;

  // the f32 iteration by itself, and the measurement cut short after it
  const NormEstimate shadow =
      golub_kahan(test::DenseOperator<float>(seen.cast<float>()),
                  {.tolerance = 1e-6, .delta = 1e-10 / 3});
  const Measurement m = Pair(seen, j).measure(
      {.tolerance = 1e-6,
       .keep_going = [&](int step) { return step < shadow.steps; },
       .dense_limit = always_iterate});
  ASSERT_EQ(m.lower_by, NormMethod::golub_kahan_f32);
  ASSERT_NEAR(m.lower, 1.0, 1e-6);
  ASSERT_LT(m.residual, 1e-5);

  // without the term for E the claim would be false, with it it holds
  ASSERT_LT(shadow.upper_factor * shadow.value, 3.0);
  EXPECT_GE(m.upper_whp.value(), 3.0);
}

TEST(MeasureNorm, LeavesTheRoomForDriftWorkedByHand) {
  // E = 1e-6 I, so that ‖E ω‖ = 1e-6 ‖ω‖, close to 1e-6 √n for every probe;
  // a room of 0.05 takes three of them, α √(2/π) = (3e10)^{1/3} 0.798 = 2479
  const Matrix j = with_singular_values(n, n, spectrum());
  const Matrix seen = j - 1e-6 * Matrix::Identity(n, n);
  const Measurement m =
      Pair(seen, j).measure({.enclose = 1.5, .dense_limit = always_iterate});
  const NormEstimate shadow =
      golub_kahan(test::DenseOperator<float>(seen.cast<float>()),
                  {.enclose = 1.45, .delta = 1e-10 / 3});
  const double room = m.upper_whp.value() - shadow.upper_factor * shadow.value;
  EXPECT_GT(room, 2479 * 1e-6 * std::sqrt(n));
  EXPECT_LT(room, 2479 * 1e-6 * std::sqrt(n) * 1.25);
}

TEST(MeasureNorm, GoesOnInF64WhereF32IsNoGood) {
  const Matrix j = with_singular_values(n, n, spectrum());
  const Matrix noise = 1e-2 * with_singular_values(n, n, Vector::Ones(n));
  const Measurement m =
      Pair(j + noise * noise, j).measure({.dense_limit = always_iterate});
  EXPECT_EQ(m.lower_by, NormMethod::golub_kahan_f64);
  EXPECT_LE(m.residual, 1e-5);
  EXPECT_TRUE(m.converged);
  EXPECT_NEAR(m.lower, 1.0, 1e-9);
  expect_testimony(j, m);
}

TEST(MeasureNorm, EnclosesInF64WhereF32CannotBeBelieved) {
  const Matrix j = with_singular_values(n, n, spectrum());
  const Matrix seen = j + 0.05 * with_singular_values(n, n, Vector::Ones(n));
  const Measurement m =
      Pair(seen, j).measure({.enclose = 1.05, .dense_limit = always_iterate});
  EXPECT_TRUE(m.converged);
  EXPECT_EQ(m.lower_by, NormMethod::golub_kahan_f64);
  EXPECT_GE(m.upper_whp.value(), 1.0);
  EXPECT_LE(m.upper_whp.value(), 1.05 * m.lower);
  EXPECT_FALSE(m.upper.has_value());
}

TEST(MeasureNorm, ReachesTolerancesThatF32Cannot) {
  const Matrix j = with_singular_values(n, n, spectrum());
  const Measurement m =
      Pair(j).measure({.tolerance = 1e-10, .dense_limit = always_iterate});
  EXPECT_EQ(m.lower_by, NormMethod::golub_kahan_f64);
  EXPECT_LE(m.residual, 1e-10);
  EXPECT_NEAR(m.lower, 1.0, 1e-13);
}

TEST(MeasureNorm, OfAConstantMapIsZero) {
  for (const Index limit : {always_iterate, n}) {
    const Measurement m = Pair(Matrix::Zero(n, n))
                              .measure({.enclose = 1.1, .dense_limit = limit});
    EXPECT_EQ(m.lower, 0.0);
    EXPECT_EQ(m.upper_whp.value(), 0.0);
    EXPECT_TRUE(m.converged);
  }
}

TEST(MeasureNorm, FindsWhatF32LosesAltogether) {
  // in f32 the map underflows to zero
  const Matrix j = 1e-60 * with_singular_values(n, n, spectrum());
  const Measurement m = Pair(j).measure({.dense_limit = always_iterate});
  EXPECT_EQ(m.lower_by, NormMethod::golub_kahan_f64);
  EXPECT_NEAR(m.lower / 1e-60, 1.0, 1e-9);
  EXPECT_GE(m.upper_whp.value(), 1e-60);
}

TEST(MeasureNorm, StopsWhenToldTo) {
  const Matrix j = with_singular_values(n, n, spectrum());
  int last = 0;
  const Measurement m = Pair(j).measure(
      {.tolerance = 1e-12,
       .keep_going = [&](int step) { return (last = step) < 4; },
       .dense_limit = always_iterate});
  EXPECT_EQ(last, 4);
  EXPECT_EQ(m.steps, 4);
  EXPECT_FALSE(m.converged);
  expect_testimony(j, m);
}

TEST(MeasureNorm, CountsStepsOverAllIterations) {
  const Matrix j = with_singular_values(n, n, spectrum());
  std::vector<int> heard;
  const Measurement m = Pair(j).measure({.tolerance = 1e-10,
                                         .keep_going =
                                             [&](int step) {
                                               heard.push_back(step);
                                               return true;
                                             },
                                         .dense_limit = always_iterate});
  ASSERT_EQ(static_cast<int>(heard.size()), m.steps);
  for (int i = 0; i < m.steps; ++i) EXPECT_EQ(heard[i], i + 1);
}

TEST(MeasureNorms, MeasuresEachSequenceAsIfAlone) {
  // four sequences of five tokens: good in f32, bad in f32, and zero
  const Index k = n / 4;
  Matrix is = Matrix::Zero(n, n), seen = Matrix::Zero(n, n);
  for (Index b = 0; b < 3; ++b)
    is.block(b * k, b * k, k, k) =
        with_singular_values(k, k, (b + 1.0) * Vector::LinSpaced(k, 1.0, 0.1));
  seen = is;
  seen.block(k, k, k, k) += 1e-2 * with_singular_values(k, k, Vector::Ones(k));

  for (const Index limit : {always_iterate, k}) {
    const auto all = measure_norms(
        LinearMap<float>(seen.cast<float>()), LinearMap<double>(is), x,
        {.enclose = 1.2, .dense_limit = limit, .sequences = 4});
    ASSERT_EQ(all.size(), 4u);
    for (Index b = 0; b < 4; ++b) {
      const double norm = b < 3 ? b + 1.0 : 0.0;
      EXPECT_TRUE(all[b].converged) << "sequence " << b;
      EXPECT_NEAR(all[b].lower, norm, 1e-8) << "sequence " << b;
      EXPECT_GE(all[b].upper_whp.value(), norm) << "sequence " << b;
      EXPECT_EQ(all[b].upper.has_value(), limit == k);
      if (b < 3) expect_testimony(is.block(b * k, b * k, k, k), all[b]);
    }
    if (limit == always_iterate) {
      EXPECT_EQ(all[1].lower_by, NormMethod::golub_kahan_f64);
    }
  }
}

// x ↦ A_b vec(x_b) for each sequence b
template <class Real>
class BlocksMap final : public Map<Real> {
 public:
  explicit BlocksMap(std::vector<Matrix> blocks) : blocks_(std::move(blocks)) {}

  MatrixOf<Real> operator()(const MatrixOf<Real>& at) const override {
    const VectorOf<Real> y = linearize(at)->apply(flatten(at));
    return unflatten(y, at.rows(), at.cols());
  }
  std::unique_ptr<LinearOperator<Real>> linearize(
      const MatrixOf<Real>&) const override {
    std::vector<OperatorPtr<Real>> parts;
    for (const Matrix& block : blocks_)
      parts.push_back(std::make_unique<test::DenseOperator<Real>>(
          block.template cast<Real>()));
    return block_diagonal(std::move(parts));
  }

 private:
  std::vector<Matrix> blocks_;
};

TEST(MeasureNorms, HasTheBitsOfEachSequenceAlone) {
  // one that f32 serves, one that it does not, one that it hides altogether
  const Index k = n / 4;
  std::vector<Matrix> is, seen;
  for (const double error : {0.0, 1e-2, 1.0}) {
    is.push_back(with_singular_values(
        k, k, (1.0 + error) * Vector::LinSpaced(k, 1.0, 0.1)));
    seen.push_back(
        is.back() -
        error * with_singular_values(k, k, Vector::LinSpaced(k, 1.0, 0.1)));
  }
  for (const double enclose : {0.0, 1.2}) {
    MeasureOptions how{
        .enclose = enclose, .dense_limit = always_iterate, .sequences = 3};
    const Matrix stacked = x.topRows(x.rows() / 4 * 3);
    const auto all = measure_norms(BlocksMap<float>(seen),
                                   BlocksMap<double>(is), stacked, how);
    how.sequences = 1;
    for (Index b = 0; b < 3; ++b) {
      const Measurement alone =
          measure_norm(BlocksMap<float>({seen[b]}), BlocksMap<double>({is[b]}),
                       x.middleRows(b * x.rows() / 4, x.rows() / 4), how);
      EXPECT_EQ(all[b].lower, alone.lower) << "sequence " << b;
      EXPECT_EQ(all[b].lower_by, alone.lower_by) << "sequence " << b;
      EXPECT_EQ(all[b].upper_whp, alone.upper_whp) << "sequence " << b;
      EXPECT_EQ(all[b].residual, alone.residual) << "sequence " << b;
      EXPECT_EQ(all[b].steps, alone.steps) << "sequence " << b;
      EXPECT_TRUE(all[b].direction == alone.direction) << "sequence " << b;
    }
    if (enclose > 0.0) {
      EXPECT_EQ(all[0].lower_by, NormMethod::golub_kahan_f32);
      EXPECT_EQ(all[1].lower_by, NormMethod::golub_kahan_f64);
    }
  }
}

TEST(MemoryPlan, SaysWhereASequenceStartsAgain) {
  MeasureOptions how{.max_steps = 100, .dense_limit = 512};
  EXPECT_EQ(memory_plan(1000, how), MemoryPlan{});  // no limit
  how.memory = 1000 * 4 * 30;
  EXPECT_EQ(memory_plan(1000, how), (MemoryPlan{30, 15}));
  EXPECT_EQ(memory_plan(513, how), (MemoryPlan{58, 29}));
  EXPECT_EQ(memory_plan(512, how), MemoryPlan{});  // decomposed
  how.memory = 1;
  EXPECT_EQ(memory_plan(1000, how), (MemoryPlan{8, 8}));
  // where all steps fit, the limit decides nothing
  how.memory = 1000 * 4 * 100;
  EXPECT_EQ(memory_plan(1000, how), (MemoryPlan{0, 50}));
  how.memory *= 2;
  EXPECT_EQ(memory_plan(1000, how), MemoryPlan{});
  // however many sequences are measured together
  how.memory = 1000 * 4 * 30;
  how.sequences = 10;
  EXPECT_EQ(memory_plan(1000, how), (MemoryPlan{30, 15}));
}

TEST(MeasureNorm, RefusesWhatCannotBeMeasured) {
  const Pair map(Matrix::Identity(n, n));
  EXPECT_THROW(map.measure({.sequences = 2}), std::invalid_argument);
  EXPECT_THROW(map.measure({.enclose = 0.9}), std::invalid_argument);
  EXPECT_THROW(map.measure({.delta = 1.0}), std::invalid_argument);
  EXPECT_THROW(measure_norms(map.search, map.witness, x, {.sequences = 3}),
               std::invalid_argument);
  EXPECT_THROW(measure_norm(map.search, map.witness, Matrix(0, 6)),
               std::invalid_argument);
  EXPECT_THROW(measure_norm(map.search, map.witness, 1e300 * x,
                            {.dense_limit = always_iterate}),
               std::invalid_argument);
}

}  // namespace estimate_test
}  // namespace lipscope
