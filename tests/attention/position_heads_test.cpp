#include "lipscope/attention/position_heads.h"

#include <gtest/gtest.h>

#include "lipscope/core/rng.h"
#include "lipscope/operators/check.h"
#include "tests/support/tolerance.h"

namespace lipscope {
namespace position_heads_test {

struct Shape {
  Index n, distances, heads, head_width, features, width, sequences;
};

PositionHeads random_heads(const Shape& s, std::uint64_t seed) {
  const Rng rng(seed);
  return {.weights = gaussian(s.distances, s.heads, rng.split(0)).cwiseAbs(),
          .value = gaussian(s.features, s.heads * s.head_width, rng.split(1)),
          .share = gaussian(s.heads, 1, rng.split(2)).cwiseAbs(),
          .width = s.width};
}

// the Jacobian, entry by entry from the formula: token i of a sequence reads
// token i − t of the same sequence
Matrix dense(const PositionHeads& heads, const Shape& s) {
  const Index d = s.features, k = s.head_width, all = s.n * s.sequences;
  Matrix j = Matrix::Zero(all * s.width, all * d);
  for (Index q = 0; q < s.sequences; ++q)
    for (Index i = 0; i < s.n; ++i)
      for (Index from = 0; from <= i; ++from) {
        if (i - from >= s.distances) continue;
        for (Index c = 0; c < s.heads * k; ++c)
          for (Index e = 0; e < d; ++e)
            j((q * s.n + i) * s.width + c, (q * s.n + from) * d + e) =
                heads.share[c / k] * heads.weights(i - from, c / k) *
                heads.value(e, c);
      }
  return j;
}

class EveryPositionHeads : public testing::TestWithParam<Shape> {};

TEST_P(EveryPositionHeads, AreAConvolutionEntryByEntry) {
  const Shape s = GetParam();
  const PositionHeads heads = random_heads(s, 1);
  const PositionHeadsMap<double> f(heads, s.sequences, 2);
  const Matrix x = gaussian(s.n * s.sequences, s.features, Rng(2));
  const Matrix exact = dense(heads, s);
  const Matrix found = materialize(*f.linearize(x));
  ASSERT_EQ(found.rows(), exact.rows());
  ASSERT_EQ(found.cols(), exact.cols());
  EXPECT_LT((found - exact).norm(), 1e-14 * exact.norm());
  const Vector y = exact * flatten(x);
  EXPECT_LT((flatten(f(x)) - y).norm(), 1e-13 * y.norm());
}

TEST_P(EveryPositionHeads, HaveTheDerivativeOfTheirValuesAndItsAdjoint) {
  const Shape s = GetParam();
  const PositionHeadsMap<double> f(random_heads(s, 3), s.sequences);
  const Matrix x = gaussian(s.n * s.sequences, s.features, Rng(4));
  const DerivativeCheck check = check_derivative(f, x, Rng(5));
  EXPECT_LT(check.error, 1e-9);
  EXPECT_GT(check.magnitude, 1e-3);
  EXPECT_LT(adjoint_defect(*f.linearize(x), Rng(6)), 1e-14);
}

TEST_P(EveryPositionHeads, AreTheSameInSinglePrecisionUpToRounding) {
  const Shape s = GetParam();
  const PositionHeads heads = random_heads(s, 7);
  const PositionHeadsMap<double> f(heads, s.sequences);
  const PositionHeadsMap<float> single(heads, s.sequences);
  const MatrixOf<float> x =
      gaussian(s.n * s.sequences, s.features, Rng(8)).cast<float>();
  const Matrix exact = f(x.cast<double>());
  EXPECT_LT((single(x).cast<double>() - exact).norm(),
            test::rounding<float>(50) * exact.norm());
}

// ARCHITECTURE.md, "Independent rows"
TEST(PositionHeads, OfOneSequenceHaveTheBitsThatTheyHaveBesideOthers) {
  const Shape s{7, 5, 3, 3, 5, 10, 4};
  const PositionHeads heads = random_heads(s, 13);
  const Matrix x = gaussian(s.n * s.sequences, s.features, Rng(14));
  const Matrix all = PositionHeadsMap<double>(heads, s.sequences, 2)(x);
  const PositionHeadsMap<double> alone(heads, 1, 1);
  for (Index q = 0; q < s.sequences; ++q)
    EXPECT_EQ(alone(x.middleRows(q * s.n, s.n)), all.middleRows(q * s.n, s.n));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, EveryPositionHeads,
    testing::Values(Shape{5, 5, 2, 3, 4, 6, 1},    // all distances
                    Shape{7, 3, 2, 2, 5, 4, 1},    // fewer than tokens
                    Shape{3, 9, 1, 2, 2, 5, 1},    // more, and idle coordinates
                    Shape{4, 3, 3, 1, 2, 3, 3},    // several sequences
                    Shape{1, 1, 1, 1, 1, 1, 2}));  // one token each

TEST(PositionHeads, LeaveTheCoordinatesBehindThemZero) {
  const Shape s{4, 4, 2, 1, 3, 5, 1};
  const Matrix y =
      PositionHeadsMap<double>(random_heads(s, 9))(gaussian(4, 3, Rng(10)));
  EXPECT_TRUE(y.rightCols(3).isZero(0.0));
  EXPECT_GT(y.leftCols(2).norm(), 0.1);
}

std::string refusal(const PositionHeads& heads) {
  try {
    PositionHeadsMap<double>{heads};
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "";
}

TEST(PositionHeads, RefuseWhatDoesNotFitWithItsNumbers) {
  const PositionHeads good = random_heads({3, 3, 2, 2, 5, 4, 1}, 11);
  EXPECT_EQ(refusal(good), "");
  const auto with = [&](auto spoil) {
    PositionHeads bad = good;
    spoil(bad);
    return refusal(bad);
  };
  EXPECT_NE(with([](PositionHeads& h) {
              h.value = Matrix::Ones(5, 3);
            }).find("[5x3] of 2 heads"),
            std::string::npos);
  EXPECT_NE(with([](PositionHeads& h) {
              h.share = Vector::Ones(3);
            }).find("3 shares for 2 heads"),
            std::string::npos);
  EXPECT_NE(with([](PositionHeads& h) {
              h.width = 3;
            }).find("3 coordinates for values of 4"),
            std::string::npos);
  EXPECT_NE(with([](PositionHeads& h) {
              h.weights(1, 1) = -1e-9;
            }).find("at least 0"),
            std::string::npos);
  EXPECT_NE(with([](PositionHeads& h) { h.share[0] = -1; }).find("at least 0"),
            std::string::npos);
  EXPECT_NE(with([](PositionHeads& h) { h.value(0, 0) = NAN; }).find("finite"),
            std::string::npos);
  EXPECT_NE(with([](PositionHeads& h) {
              h.weights.resize(0, 2);
            }).find("2 heads, 0 distances"),
            std::string::npos);
}

TEST(PositionHeads, RefuseTokensThatDoNotFitWithTheirNumbers) {
  const PositionHeads heads = random_heads({3, 3, 2, 2, 5, 4, 1}, 12);
  const PositionHeadsMap<double> f(heads, 2);
  const auto says = [&](const Matrix& x, const char* what) {
    try {
      f(x);
      ADD_FAILURE() << "[" << x.rows() << "x" << x.cols() << "] was taken";
    } catch (const std::invalid_argument& e) {
      EXPECT_NE(std::string(e.what()).find(what), std::string::npos)
          << e.what();
    }
  };
  says(Matrix::Ones(4, 4), "[4x4] tokens of 2 sequences, the heads read 5");
  says(Matrix::Ones(3, 5), "[3x5] tokens of 2 sequences");
  says(Matrix::Constant(4, 5, NAN), "not all finite");
  EXPECT_THROW(f.linearize(Matrix::Ones(4, 5))->apply(Vector::Ones(19)),
               std::invalid_argument);
  EXPECT_THROW(f.linearize(Matrix::Ones(4, 5))->apply_adjoint(Vector::Ones(15)),
               std::invalid_argument);
  EXPECT_THROW(PositionHeadsMap<double>(heads, 0), std::invalid_argument);
}

}  // namespace position_heads_test
}  // namespace lipscope
