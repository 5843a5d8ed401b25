#include "lipscope/attention/layer_norm.h"

#include <gtest/gtest.h>

#include "lipscope/core/errors.h"
#include "lipscope/operators/check.h"
#include "lipscope/spectral/dense.h"
#include "tests/support/tolerance.h"

namespace lipscope {
namespace layer_norm_test {

double relative(const Matrix& a, const Matrix& b) {
  return (a - b).norm() / b.norm();
}

// the Jacobian in closed form, token by token:
// diag(γ)(σ²+ε)^{-1/2}[I − 11ᵀ/D − zzᵀ/(D(σ²+ε))]; without 11ᵀ/D for RMSNorm
Matrix closed_form(const NormWeights& w, const Matrix& x) {
  const Index D = x.cols();
  const bool centred = w.kind == NormWeights::Kind::layer;
  Matrix J = Matrix::Zero(x.size(), x.size());
  for (Index i = 0; i < x.rows(); ++i) {
    Vector z = x.row(i).transpose();
    if (centred) z.array() -= z.mean();
    const double v = z.squaredNorm() / D + w.epsilon;
    Matrix B = Matrix::Identity(D, D) - z * z.transpose() / (D * v);
    if (centred) B -= Matrix::Constant(D, D, 1.0 / D);
    J.block(i * D, i * D, D, D) = w.gain.asDiagonal() * B / std::sqrt(v);
  }
  return J;
}

struct NormCase {
  NormWeights::Kind kind;
  bool bias;
  double epsilon, size;
};

class EveryNorm : public testing::TestWithParam<NormCase> {
 protected:
  NormWeights weights() const {
    NormWeights w{.kind = GetParam().kind, .epsilon = GetParam().epsilon};
    w.gain = flatten(gaussian(1, 7, Rng(1)));
    if (GetParam().bias) w.bias = flatten(gaussian(1, 7, Rng(2)));
    return w;
  }
  const Matrix x = GetParam().size * (gaussian(4, 7, Rng(3)).array() + 0.7);
};

TEST_P(EveryNorm, HasTheJacobianOfTheClosedForm) {
  const LayerNorm<double> f(weights());
  const auto J = f.linearize(x);
  EXPECT_LT(relative(materialize(*J), closed_form(weights(), x)), 1e-13);
  EXPECT_LT(adjoint_defect(*J, Rng(4)), 1e-14);
}

TEST_P(EveryNorm, HasTheDerivativeOfItsValues) {
  const DerivativeCheck check =
      check_derivative(LayerNorm<double>(weights()), x, Rng(5));
  EXPECT_LT(check.error, 1e-9);
  EXPECT_GT(check.magnitude, 1e-3);
  EXPECT_FALSE(check.identical);
}

TEST_P(EveryNorm, StaysBelowTheLocalBound) {
  const Matrix J = materialize(*LayerNorm<double>(weights()).linearize(x));
  double smallest = INFINITY;
  for (Index i = 0; i < x.rows(); ++i) {
    Vector z = x.row(i).transpose();
    if (weights().kind == NormWeights::Kind::layer) z.array() -= z.mean();
    smallest = std::min(smallest, z.squaredNorm() / 7 + weights().epsilon);
  }
  EXPECT_LE(dense_norm(J).value, weights().gain.cwiseAbs().maxCoeff() /
                                     std::sqrt(smallest) * (1 + 1e-12));
}

TEST_P(EveryNorm, IsTheSameInSinglePrecisionUpToRounding) {
  const LayerNorm<float> single(weights());
  const MatrixOf<float> xs = x.cast<float>();
  const LayerNorm<double> f(weights());
  EXPECT_LT(relative(single(xs).cast<double>(), f(xs.cast<double>())),
            test::rounding<float>(100));
  EXPECT_LT(relative(materialize(*single.linearize(xs)).cast<double>(),
                     materialize(*f.linearize(xs.cast<double>()))),
            test::rounding<float>(100));
}

INSTANTIATE_TEST_SUITE_P(
    Norms, EveryNorm,
    testing::Values(NormCase{NormWeights::Kind::layer, true, 1e-5, 1.0},
                    NormCase{NormWeights::Kind::layer, false, 0.5, 1.0},
                    NormCase{NormWeights::Kind::layer, true, 1e-12, 30.0},
                    NormCase{NormWeights::Kind::rms, false, 1e-6, 1.0},
                    NormCase{NormWeights::Kind::rms, true, 0.5, 3.0}));

TEST(LayerNorm, IsWhatIsWorkedByHand) {
  // z = (−2, 0, 2), biased variance 8/3, ε = 1/3: z/√3
  NormWeights w{.gain = Vector::Constant(3, 2.0),
                .bias = Vector::Constant(3, 1.0),
                .epsilon = 1.0 / 3};
  Matrix x(1, 3);
  x << 1, 3, 5;
  const Matrix y = LayerNorm<double>(w)(x);
  EXPECT_NEAR(y(0, 0), 1 - 4 / std::sqrt(3.0), 1e-15);
  EXPECT_NEAR(y(0, 1), 1.0, 1e-15);
  // RMSNorm: mean square 35/3, and ε = 1/3 makes 12
  w.kind = NormWeights::Kind::rms;
  EXPECT_NEAR(LayerNorm<double>(w)(x)(0, 2), 1 + 10 / std::sqrt(12.0), 1e-15);
}

TEST(LayerNorm, RefusesWhatDoesNotFit) {
  NormWeights w{.gain = Vector::Ones(3)};
  const LayerNorm<double> f(w);
  EXPECT_THROW(f(Matrix::Ones(2, 4)), std::invalid_argument);
  EXPECT_THROW(f(Matrix::Constant(2, 3, NAN)), std::invalid_argument);
  const LayerNorm<float> single(w);
  MatrixOf<float> huge = gaussian(2, 3, Rng(1)).cast<float>() * 1e30f;
  EXPECT_THROW(single(huge), RunError);
  w.epsilon = 0;
  EXPECT_THROW(LayerNorm<double>{w}, std::invalid_argument);
  w.epsilon = 1e-5;
  w.bias = Vector::Ones(2);
  EXPECT_THROW(LayerNorm<double>{w}, std::invalid_argument);
}

}  // namespace layer_norm_test
}  // namespace lipscope
