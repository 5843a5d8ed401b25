#include "lipscope/model/mlp.h"

#include <gtest/gtest.h>

#include "lipscope/operators/check.h"
#include "tests/support/tolerance.h"

namespace lipscope {
namespace mlp_test {

double relative(const Matrix& a, const Matrix& b) {
  return (a - b).norm() / b.norm();
}

struct MlpCase {
  Activation activation;
  bool gated, biases;
};

// scalar definitions, and their derivatives by hand
double value_of(Activation a, double x) {
  const double inner = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
  switch (a) {
    case Activation::gelu:
      return x * 0.5 * (1 + std::erf(x / std::sqrt(2.0)));
    case Activation::gelu_tanh:
      return 0.5 * x * (1 + std::tanh(inner));
    case Activation::relu:
      return x > 0 ? x : 0;
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::max_min:
      break;  // is none of one feature
  }
  return NAN;
}

double slope_of(Activation a, double x) {
  const double h = 1e-4 * std::max(1.0, std::abs(x));
  if (a == Activation::relu) return x > 0 ? 1 : 0;
  return (8 * (value_of(a, x + h) - value_of(a, x - h)) -
          (value_of(a, x + 2 * h) - value_of(a, x - 2 * h))) /
         (12 * h);
}

class EveryMlp : public testing::TestWithParam<MlpCase> {
 protected:
  MlpWeights weights() const {
    const Rng rng(7);
    MlpWeights w{.activation = GetParam().activation};
    w.up = gaussian(5, 9, rng.split(0));
    w.down = gaussian(9, 4, rng.split(1));
    if (GetParam().gated) w.gate = gaussian(5, 9, rng.split(2));
    if (GetParam().biases) {
      w.up_bias = flatten(gaussian(1, 9, rng.split(3)));
      w.down_bias = flatten(gaussian(1, 4, rng.split(4)));
      if (GetParam().gated) w.gate_bias = flatten(gaussian(1, 9, rng.split(5)));
    }
    return w;
  }
  const Matrix x = gaussian(3, 5, Rng(8));
};

TEST_P(EveryMlp, IsItsFormulaEntryByEntry) {
  const MlpWeights w = weights();
  const bool gated = GetParam().gated;
  const Matrix y = Mlp<double>(w, 1)(x);
  const Matrix J = materialize(*Mlp<double>(w, 1).linearize(x));
  Matrix exact = Matrix::Zero(3, 4), exact_J = Matrix::Zero(12, 15);
  const auto bias = [](const Vector& b, Index j) {
    return b.size() > 0 ? b[j] : 0.0;
  };
  for (Index i = 0; i < 3; ++i)
    for (Index c = 0; c < 4; ++c) {
      exact(i, c) = bias(w.down_bias, c);
      for (Index j = 0; j < 9; ++j) {
        const double up = x.row(i).dot(w.up.col(j)) + bias(w.up_bias, j);
        const double gate =
            gated ? x.row(i).dot(w.gate.col(j)) + bias(w.gate_bias, j) : up;
        const double act = value_of(w.activation, gate);
        const double slope = slope_of(w.activation, gate);
        exact(i, c) += (gated ? act * up : act) * w.down(j, c);
        for (Index e = 0; e < 5; ++e)
          exact_J(i * 4 + c, i * 5 + e) +=
              (gated ? slope * w.gate(e, j) * up + act * w.up(e, j)
                     : slope * w.up(e, j)) *
              w.down(j, c);
      }
    }
  EXPECT_LT(relative(y, exact), 1e-14);
  EXPECT_LT(relative(J, exact_J), 1e-10);  // slope_of is a difference quotient
}

TEST_P(EveryMlp, HasTheDerivativeOfItsValuesAndItsAdjoint) {
  const Mlp<double> f(weights());
  const DerivativeCheck check = check_derivative(f, x, Rng(9));
  EXPECT_LT(check.error, 1e-9);
  EXPECT_GT(check.magnitude, 1e-3);
  EXPECT_FALSE(check.identical);
  EXPECT_LT(adjoint_defect(*f.linearize(x), Rng(10)), 1e-14);
}

TEST_P(EveryMlp, IsTheSameInSinglePrecisionUpToRounding) {
  const Mlp<double> f(weights());
  const Mlp<float> single(weights());
  const MatrixOf<float> xs = x.cast<float>();
  EXPECT_LT(relative(single(xs).cast<double>(), f(xs.cast<double>())),
            test::rounding<float>(50));
  EXPECT_LT(relative(materialize(*single.linearize(xs)).cast<double>(),
                     materialize(*f.linearize(xs.cast<double>()))),
            test::rounding<float>(50));
}

INSTANTIATE_TEST_SUITE_P(
    Mlps, EveryMlp,
    testing::Values(MlpCase{Activation::gelu, false, true},
                    MlpCase{Activation::gelu, false, false},
                    MlpCase{Activation::gelu_tanh, false, true},
                    MlpCase{Activation::relu, false, true},
                    MlpCase{Activation::silu, false, true},
                    MlpCase{Activation::silu, true, false},
                    MlpCase{Activation::gelu, true, true}));

TEST(Activation, HoldsFarFromZeroAndInBothPrecisions) {
  const Index count = 40001;
  Matrix x(1, count);
  for (Index i = 0; i < count; ++i) x(0, i) = (i - 20000) / 500.0;  // [−40, 40]
  for (const Activation a : {Activation::gelu, Activation::gelu_tanh,
                             Activation::relu, Activation::silu}) {
    const Matrix value = activation_values(a, x, 2);
    const Matrix slope = activation_slopes(a, x, 2);
    const MatrixOf<float> value32 =
        activation_values<float>(a, x.cast<float>(), 2);
    const MatrixOf<float> slope32 =
        activation_slopes<float>(a, x.cast<float>(), 2);
    for (Index i = 0; i < count; ++i) {
      const double t = x(0, i);
      EXPECT_NEAR(value(0, i), value_of(a, t),
                  1e-14 * std::max(1.0, std::abs(t)));
      EXPECT_NEAR(value32(0, i), value_of(a, t),
                  4e-7 * std::max(1.0, std::abs(t)));
      EXPECT_NEAR(slope(0, i), slope_of(a, t), 1e-9);
      EXPECT_NEAR(slope32(0, i), slope_of(a, t), 1e-6);
    }
  }
  // the largest slopes of GELU and SiLU, by maximising their derivatives
  EXPECT_NEAR(activation_slopes(Activation::gelu, x, 1).maxCoeff(), 1.128904,
              1e-5);
  EXPECT_NEAR(activation_slopes(Activation::silu, x, 1).maxCoeff(), 1.0998,
              1e-4);
}

TEST(Mlp, RefusesWhatDoesNotFit) {
  const MlpWeights good{.up = Matrix::Ones(3, 4), .down = Matrix::Ones(4, 3)};
  const Mlp<double> f(good);
  EXPECT_THROW(f(Matrix::Ones(2, 2)), std::invalid_argument);
  EXPECT_THROW(f(Matrix::Constant(2, 3, NAN)), std::invalid_argument);
  const auto refuses = [&](auto spoil) {
    MlpWeights bad = good;
    spoil(bad);
    EXPECT_THROW(Mlp<double>{bad}, std::invalid_argument);
  };
  refuses([](MlpWeights& w) { w.gate = Matrix::Ones(4, 3); });
  refuses([](MlpWeights& w) { w.down = Matrix::Ones(3, 3); });
  refuses([](MlpWeights& w) { w.up(1, 1) = NAN; });
  refuses([](MlpWeights& w) { w.gate_bias = Vector::Ones(4); });
  refuses([](MlpWeights& w) { w.down_bias = Vector::Ones(4); });
}

}  // namespace mlp_test
}  // namespace lipscope
