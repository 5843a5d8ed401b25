#include "lipscope/train/singular_values.h"

#include <gtest/gtest.h>

#include <Eigen/SVD>
#include <algorithm>
#include <cmath>

#include "lipscope/theory/norms.h"

namespace lipscope::test {
namespace singular_values_test {

// a matrix with these singular values
MatrixOf<float> with(const Vector& sigma, Index rows, Index cols,
                     std::uint64_t seed = 1) {
  const Index p = sigma.size();
  const Matrix u = orthonormal(rows, p, Rng(seed).split(0));
  const Matrix v = orthonormal(cols, p, Rng(seed).split(1));
  return (u * sigma.asDiagonal() * v.transpose()).cast<float>();
}

Vector singular_values(const MatrixOf<float>& w) {
  return Eigen::JacobiSVD<Matrix>(w.cast<double>()).singularValues();
}

Vector sorted(Vector v) {
  std::sort(v.begin(), v.end(), std::greater<double>());
  return v;
}

MatrixOf<float> under(const SingularValueLimit& rule, MatrixOf<float> w) {
  limit_singular_values(view(w), rule);
  return w;
}

// the limit that is aimed at is 1e-5 lower: limit·f(σ/limit) then moves by σ³
// of it, at most 3√3, and f32 does less
constexpr double tolerance = 6e-5;

// by hand: f(σ) = 1.5σ − 0.5σ³
TEST(SoftRule, MapsSingularValuesByTheCubic) {
  Vector before(5), after(5);
  before << 1.6, 1.2, 1.0, 0.5, 0.1;
  after << 0.352, 0.936, 1.0, 0.6875, 0.1495;
  for (const double limit : {1.0, 0.25, 8.0})
    for (const auto& [rows, cols] :
         {std::pair<Index, Index>{5, 5}, {5, 9}, {9, 5}}) {
      const MatrixOf<float> w =
          under({.rule = SingularValues::soft, .limit = limit, .threads = 1},
                with(limit * before, rows, cols));
      const Vector found = singular_values(w);
      EXPECT_LT((found - limit * sorted(after)).cwiseAbs().maxCoeff(),
                tolerance * limit)
          << limit << ", " << rows << "x" << cols << ": " << found.transpose();
    }
}

TEST(SoftRule, DividesByTheNormWhereADirectionWouldTurnRound) {
  for (const double norm : {1.75, 2.0, 3.0, 1000.0}) {
    Vector before(4), after(4);
    before << norm, 0.8 * norm, 0.5 * norm, 0.0;
    after << 1.0, 0.944, 0.6875, 0.0;
    const MatrixOf<float> was = with(before, 6, 4);
    const MatrixOf<float> is =
        under({.rule = SingularValues::soft, .threads = 1}, was);
    EXPECT_LT((singular_values(is) - after).cwiseAbs().maxCoeff(), tolerance)
        << norm;
    // no direction turned: uᵀWv keeps its sign
    EXPECT_GT((was.array() * is.array()).sum(), 0.0f);
  }
}

// rank 64: neither the Frobenius norm nor the row sums show that σ ≤ √3
TEST(SoftRule, DividesNothingThatNeedsNoDivision) {
  Vector before(64);
  for (Index i = 0; i < 64; ++i)
    before[i] = 0.6 + 0.5 * static_cast<double>(i) / 63.0;
  const Vector after =
      1.5 * before.array() - 0.5 * before.array() * before.array().square();
  const MatrixOf<float> w = with(before, 64, 70);
  EXPECT_GT((w.cast<double>() * w.cast<double>().transpose())
                .cwiseAbs()
                .rowwise()
                .sum()
                .maxCoeff(),
            1.5);
  const MatrixOf<float> found =
      under({.rule = SingularValues::soft, .threads = 1}, w);
  EXPECT_LT((singular_values(found) - sorted(after)).cwiseAbs().maxCoeff(),
            tolerance);
}

TEST(NormaliseRule, BringsAllButZeroToTheLimit) {
  for (const double size : {1e-3, 1.0, 30.0})
    for (const auto& [rows, cols] :
         {std::pair<Index, Index>{6, 6}, {6, 11}, {11, 6}}) {
      Vector before(6);
      before << 1.0, 0.9, 0.3, 1e-2, 1e-3, 1e-5;
      const MatrixOf<float> w =
          under({.rule = SingularValues::normalise, .limit = 2.0, .threads = 1},
                with(size * before, rows, cols));
      const Vector found = singular_values(w);
      EXPECT_GT(found.minCoeff(), 2.0 * (1 - 1e-3)) << size;
      EXPECT_LE(found.maxCoeff(), 2.0);
    }
  // rows of zeros stay
  MatrixOf<float> w = MatrixOf<float>::Zero(4, 5);
  w(1, 2) = 0.3f;
  w(3, 0) = -0.1f;
  const MatrixOf<float> found =
      under({.rule = SingularValues::normalise, .threads = 1}, w);
  EXPECT_NEAR(found(1, 2), 1.0, 1e-3);
  EXPECT_NEAR(found(3, 0), -1.0, 1e-3);
  EXPECT_NEAR(found.cwiseAbs().sum(), 2.0, 1e-3);
}

TEST(CapRule, DividesByTheNormWhereItIsAboveAlone) {
  Vector before(4);
  before << 4.0, 3.0, 1.0, 0.1;
  const MatrixOf<float> w = with(before, 4, 7);
  EXPECT_EQ(under({.limit = 4.01, .threads = 1}, w), w);
  EXPECT_EQ(under({.limit = 100.0, .threads = 1}, w), w);
  const MatrixOf<float> found = under({.limit = 2.0, .threads = 1}, w);
  EXPECT_LT((singular_values(found) - before / 2).cwiseAbs().maxCoeff(),
            2 * tolerance);
}

TEST(Rules, LeaveNoProvedNormAboveTheLimit) {
  for (const SingularValues rule :
       {SingularValues::cap, SingularValues::soft, SingularValues::normalise})
    for (const auto& [rows, cols] : {std::pair<Index, Index>{1, 1},
                                     {1, 40},
                                     {17, 5},
                                     {64, 64},
                                     {100, 300},
                                     {300, 100},
                                     {256, 512}})
      for (const double limit : {0.3, 1.0, 7.0})
        for (const double size : {0.2, 1.0, 1.1, 1.7, 1.99, 2.3, 60.0}) {
          // products of f64 take their time
          if (rows * cols > 5000 && (limit != 1.0 || size > 2.0)) continue;
          // of random numbers, and with many singular values at the top
          Matrix w = gaussian(rows, cols, Rng(7));
          w *= limit * size / weight_norm_above(w);
          MatrixOf<float> flat(rows, cols);
          if (rows <= 100)
            flat =
                (limit * size * orthonormal(rows, cols, Rng(8))).cast<float>();
          else
            flat = w.cast<float>();
          for (const MatrixOf<float>& was :
               {MatrixOf<float>(w.cast<float>()), flat}) {
            const MatrixOf<float> is =
                under({.rule = rule, .limit = limit, .threads = 1}, was);
            EXPECT_LE(guessed_norm_above(is.cast<double>(), limit), limit)
                << name_of(rule) << " " << rows << "x" << cols << " " << limit
                << " " << size;
            EXPECT_GT(is.norm(), 0.0f);
          }
        }
}

TEST(Rules, LeaveZerosAndWhatIsFree) {
  const MatrixOf<float> zero = MatrixOf<float>::Zero(3, 5);
  for (const SingularValues rule : all_singular_values)
    EXPECT_EQ(under({.rule = rule, .threads = 1}, zero), zero);
  const MatrixOf<float> w = gaussian(3, 5, Rng(1)).cast<float>();
  EXPECT_EQ(under({.rule = SingularValues::free, .threads = 1}, w), w);
  EXPECT_THROW(under({.limit = 0.0}, w), std::invalid_argument);
  MatrixOf<float> broken = w;
  broken(1, 1) = NAN;
  for (const SingularValues rule :
       {SingularValues::cap, SingularValues::soft, SingularValues::normalise})
    EXPECT_THROW(under({.rule = rule}, broken), std::invalid_argument);
}

TEST(Rules, TreatEachBlockByItselfOnAnyNumberOfThreads) {
  Layout layout;
  layout.add_table("table", 9, 7, {.deviation = 3.0});
  layout.add_matrix("heads", 40, 60, {.deviation = 0.3}, 4);
  layout.add_matrix("kept", 20, 30, {.deviation = 1.0});
  layout.add_matrix("large", 512, 1024, {.deviation = 0.05});
  const VectorOf<float> before = layout.initial<float>(1);
  const TensorChoice which = [](const Layout::Tensor& t) {
    return t.name != "kept";
  };
  for (const SingularValues rule :
       {SingularValues::cap, SingularValues::soft}) {
    VectorOf<float> first;
    for (const int threads : {1, 2, 3}) {
      VectorOf<float> w = before;
      limit_singular_values(layout, w, {.rule = rule, .threads = threads},
                            which);
      if (threads == 1) first = w;
      EXPECT_TRUE(w == first) << name_of(rule) << ", " << threads;
    }
    for (const char* name : {"table", "kept"})
      EXPECT_EQ(tensor(first, layout.slot(name)),
                tensor(before, layout.slot(name)));
    const Layout::Tensor& heads = layout.tensors()[1];
    for (Index b = 0; b < 4; ++b) {
      const MatrixOf<float> was = block(before, heads, b);
      const MatrixOf<float> alone = under({.rule = rule, .threads = 1}, was);
      EXPECT_NE(alone, was);
      EXPECT_TRUE(alone == block(first, heads, b)) << b;
    }
  }
}

}  // namespace singular_values_test
}  // namespace lipscope::test
