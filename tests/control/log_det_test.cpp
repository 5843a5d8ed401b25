#include "lipscope/control/log_det.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/control/contractive.h"
#include "lipscope/core/errors.h"
#include "tests/support/layers.h"

namespace lipscope {
namespace log_det_test {

class Dense final : public LinearOperator<double> {
 public:
  explicit Dense(Matrix a) : a_(std::move(a)) {}
  Index rows() const override { return a_.rows(); }
  Index cols() const override { return a_.cols(); }
  Vector apply(const Vector& v) const override { return a_ * v; }
  Vector apply_adjoint(const Vector& u) const override {
    return a_.transpose() * u;
  }

 private:
  Matrix a_;
};

// On a diagonal matrix random signs give the trace itself: there is no error
// bar, and det = 1.5 · 0.6 · 1.25
TEST(LogDet, OfADiagonalIsTheSumOfLogarithms) {
  const Dense a(Matrix(Vector{{0.5, -0.4, 0.25}}.asDiagonal()));
  const LogDet r = log_det(a, {.contraction = 0.5, .truncation = 1e-12});
  const double exact = std::log(1.5 * 0.6 * 1.25);
  EXPECT_NEAR(r.value, exact, 1e-12 + 1e-15);
  EXPECT_LT(r.error_bar, 1e-14);
  EXPECT_LE(r.truncation, 1e-12);
  EXPECT_NEAR(log_det_dense(a), exact, 1e-15);
}

// One term of A = q I in N = 3 dimensions: 3q against 3 log(1 + q); what is
// cut, 3(q − log(1+q)), is at most 3 q²/(2(1−q))
TEST(LogDet, CutOffIsTheFormulaAndIsAbove) {
  for (const double q : {0.1, 0.5, 0.9}) {
    const Dense a(q * Matrix::Identity(3, 3));
    const LogDet r = log_det(a, {.contraction = q, .terms = 1});
    EXPECT_NEAR(r.value, 3.0 * q, 1e-14);
    EXPECT_NEAR(r.truncation, 3.0 * q * q / (2.0 * (1.0 - q)), 1e-12);
    EXPECT_LE(r.value - 3.0 * std::log1p(q), r.truncation);
  }
  // −qI is the worst case: all terms have one sign
  const Dense worst(-0.9 * Matrix::Identity(3, 3));
  const LogDet r = log_det(worst, {.contraction = 0.9, .terms = 60});
  const double cut = r.value - 3.0 * std::log1p(-0.9);
  EXPECT_LE(cut, r.truncation);
  EXPECT_GT(cut, 0.5 * r.truncation);
}

TEST(LogDet, DenseKnowsADeterminantThatIsNegative) {
  Matrix a(2, 2);
  a << 1.0, 2.0, 3.0, 0.0;  // det(I + A) = 2·1 − 6 = −4
  EXPECT_NEAR(log_det_dense(Dense(a)), std::log(4.0), 1e-14);
  // and where the pivots have the sign
  EXPECT_NEAR(log_det_dense(Dense(Matrix::Constant(1, 1, -3.0))), std::log(2.0),
              1e-14);
}

// Attention divided by its bound is nearly flat; one head in one dimension is
// steep enough for the trace to say something.
TEST(LogDet, OfAttentionIsTheDenseValueWithinItsErrorBar) {
  AttentionWeights w;
  w.query = w.value = Matrix::Ones(1, 1);
  const ContractiveL2<double> f(w, {.kind = Kind::l2});
  int covered = 0;
  constexpr int trials = 40;
  for (int i = 0; i < trials; ++i) {
    const Matrix x = 2.0 * gaussian(9, 1, Rng(i));
    const OperatorPtr<double> a = scale(0.9, f.linearize(x));
    const LogDet r = log_det(*a, {.contraction = 0.9,
                                  .probes = 12,
                                  .truncation = 1e-6,
                                  .seed = static_cast<std::uint64_t>(i)});
    const double dense = log_det_dense(*a);
    EXPECT_GT(std::abs(dense), 0.05);
    EXPECT_GT(r.error_bar, 0.0);
    EXPECT_LT(r.error_bar, 1.0);
    covered += std::abs(r.value - dense) <= r.error_bar + r.truncation;
  }
  // 95 %: at least 33 of 40 but for a chance of 1e-3
  EXPECT_GE(covered, 33);
}

TEST(LogDet, DoesNotDependOnTheNumberOfThreads) {
  const test::LayerCase make{.kind = Kind::l2, .heads = 2};
  const ContractiveL2<double> f(test::random_layer(make), {.kind = Kind::l2});
  const OperatorPtr<double> a =
      scale(0.9, f.linearize(test::random_tokens(make)));
  const LogDet one = log_det(*a, {.contraction = 0.9, .threads = 1});
  const LogDet two = log_det(*a, {.contraction = 0.9, .threads = 2});
  EXPECT_EQ(one.value, two.value);
  EXPECT_EQ(one.error_bar, two.error_bar);
}

TEST(LogDet, RefusesWhatHasNoSeries) {
  const Dense a(Matrix::Identity(2, 2));
  EXPECT_THROW(log_det(a, {.contraction = 1.0, .terms = 5}),
               std::invalid_argument);
  EXPECT_THROW(log_det(a, {.probes = 1}), std::invalid_argument);
  EXPECT_THROW(log_det(Dense(Matrix::Ones(2, 3)), {}), std::invalid_argument);
  // a contraction that is not true
  EXPECT_THROW(log_det(Dense(1e6 * Matrix::Identity(2, 2)),
                       {.contraction = 0.5, .terms = 100}),
               RunError);
}

}  // namespace log_det_test
}  // namespace lipscope
