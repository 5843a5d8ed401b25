#include "lipscope/control/contractive.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/attention/dense.h"
#include "lipscope/attention/l2.h"
#include "lipscope/operators/check.h"
#include "lipscope/search/search.h"
#include "lipscope/spectral/inf_norm.h"
#include "lipscope/theory/norms.h"
#include "tests/support/layers.h"

namespace lipscope {
namespace contractive_test {

AttentionWeights unit_weights() {
  AttentionWeights w;
  w.query = w.value = Matrix::Ones(1, 1);
  return w;
}

std::vector<test::LayerCase> l2_cases() {
  std::vector<test::LayerCase> cases;
  for (const test::LayerCase& c : test::all_layer_cases())
    if (c.kind == Kind::l2 && c.heads != 3) cases.push_back(c);
  return cases;
}

TEST(ContractiveL2, HasAJacobianAndItsTranspose) {
  for (const test::LayerCase& c : l2_cases()) {
    const ContractiveL2<double> f(test::random_layer(c), test::options_of(c));
    const Matrix x = test::random_tokens(c);
    const DerivativeCheck check = check_derivative(f, x, Rng(3));
    EXPECT_LT(check.error, 1e-8) << c.name();
    EXPECT_GT(check.magnitude, 0.0) << c.name();
    EXPECT_FALSE(check.identical) << c.name();
    EXPECT_LT(adjoint_defect(*f.linearize(x), Rng(4)), 1e-13) << c.name();
  }
}

TEST(ContractiveL2, HasTheClosedFormOfItsJacobianOverTheBound) {
  for (const test::LayerCase& c : l2_cases()) {
    const AttentionWeights w = test::random_layer(c);
    const ContractiveL2<double> f(w, test::options_of(c));
    const Matrix x = test::random_tokens(c);
    const Matrix dense = dense_jacobian(w, test::options_of(c), x);
    const Matrix apart =
        f.bound(c.n).value() * materialize(*f.linearize(x)) - dense;
    EXPECT_LT(apart.norm(), 1e-12 * dense.norm()) << c.name();
  }
}

TEST(ContractiveL2, IsDividedByTheBoundOfItsWindowAndHasNoneWithPadding) {
  const ContractiveL2<double> f(unit_weights(),
                                {.kind = Kind::l2, .mask = {.window = 2}});
  // three tokens see one another, however many there are
  EXPECT_NEAR(f.bound(1001).value(), 4 * kim21_phi_inverse(3) + 1.0, 1e-12);
  const double far = std::sqrt(kim21_phi_inverse(3) + 1);
  Matrix x(5, 1);
  x << 9, far, 0, -far, -9;
  const double norm =
      materialize(*f.linearize(x)).cwiseAbs().rowwise().sum().maxCoeff();
  EXPECT_LE(norm, 1.0);
  EXPECT_GT(norm, 0.75);
  EXPECT_THROW(
      ContractiveL2<double>(unit_weights(),
                            {.kind = Kind::l2, .mask = {.padding_after = 1}}),
      std::invalid_argument);
}

// p(2) = 0.278465 and k = 1: L(2) = 4p + 1 = 2.113858, divided out of the map
// on X = (0, 1): P = softmax(0, −1) and f_0 = e^{-1}/(1 + e^{-1})/L
TEST(ContractiveL2, IsL2AttentionOverTheBoundWorkedByHand) {
  const ContractiveL2<double> f(unit_weights(), {.kind = Kind::l2});
  EXPECT_NEAR(f.bound(2).value(), 4 * 0.2784645427610738 + 1.0, 1e-12);
  EXPECT_NEAR(f.bound(1001).value(), 4 * 4.42132 + 1.0, 4e-5);
  Matrix x(2, 1);
  x << 0.0, 1.0;
  const double share = std::exp(-1.0) / (1.0 + std::exp(-1.0));
  // L is rounded up
  EXPECT_NEAR(f(x)(0, 0), share / (4 * 0.2784645427610738 + 1.0), 1e-13);
}

TEST(ContractiveL2, DividesByTheBoundOfEachSequenceLength) {
  const test::LayerCase c{.kind = Kind::l2, .heads = 2, .n = 6};
  const AttentionWeights w = test::random_layer(c);
  const Matrix x = test::random_tokens(c);
  const ContractiveL2<double> one(w, {.kind = Kind::l2});
  const ContractiveL2<double> two(w, {.kind = Kind::l2, .sequences = 2});
  Matrix apart(6, c.d);
  apart << one(x.topRows(3)), one(x.bottomRows(3));
  EXPECT_LT((two(x) - apart).cwiseAbs().maxCoeff(), 1e-15);
  EXPECT_LT(one.bound(3).value(), one.bound(6).value());
}

TEST(ContractiveL2, AgreesInBothPrecisions) {
  const test::LayerCase c{.kind = Kind::l2, .heads = 2};
  const Matrix x = test::random_tokens(c);
  const ContractiveL2<double> f(test::random_layer(c), {.kind = Kind::l2});
  const ContractiveL2<float> g(test::random_layer(c), {.kind = Kind::l2});
  const Matrix apart =
      g(MatrixOf<float>(x.cast<float>())).cast<double>() - f(x);
  EXPECT_LT(apart.norm(), 1e-5 * f(x).norm());
}

// The inputs at which Kim21's bound is nearly attained, and what ascents find
// from them: the divided map never moves two inputs apart.
TEST(ContractiveL2, IsNotSteeperThanOneWhereSearchLooks) {
  double steepest = 0.0;
  for (const Index n : {2, 9, 21}) {
    const AttentionWeights w = unit_weights();
    const ContractiveL2<double> f(w, {.kind = Kind::l2});
    const SearchResult found =
        search(w, {.kind = Kind::l2, .threads = 1}, everywhere(),
               {.norm = Norm::inf, .n = n, .restarts = 2});
    const double norm = inf_norm(*f.linearize(found.best.x)).value;
    EXPECT_LE(norm, 1.0) << n;
    EXPECT_NEAR(norm, found.best.value / f.bound(n).value(), 1e-10) << n;
    steepest = std::max(steepest, norm);
  }
  EXPECT_GT(steepest, 0.8);  // or the search looked nowhere
  for (const test::LayerCase& c : l2_cases())
    for (const double size : {0.1, 1.0, 10.0}) {
      const ContractiveL2<double> f(test::random_layer(c), test::options_of(c));
      EXPECT_LE(inf_norm(*f.linearize(test::random_tokens(c, size))).value, 1.0)
          << c.name();
    }
}

TEST(ContractiveL2, RefusesWhatItsBoundDoesNotSpeakOf) {
  const test::LayerCase dot{.kind = Kind::dot}, l2{.kind = Kind::l2};
  EXPECT_THROW(ContractiveL2<double>(test::random_layer(dot), {}),
               std::invalid_argument);
  AttentionOptions o{.kind = Kind::l2};
  o.log_mass = Vector::Zero(5);
  EXPECT_THROW(ContractiveL2<double>(test::random_layer(l2), o),
               std::invalid_argument);
  AttentionWeights plain;
  plain.query = plain.value = Matrix::Identity(1, 1);
  AttentionOptions far{.kind = Kind::l2, .mask = Mask::causal};
  EXPECT_NO_THROW(ContractiveL2<double>(plain, far));
  far.relative_bias =
      RelativeBias{.table = Vector::Zero(3), .looks_back = true};
  EXPECT_THROW(ContractiveL2<double>(plain, far), std::invalid_argument);
}

TEST(ContractiveFactor, IsRoundedDownInBothPrecisions) {
  for (const double l : {3.0, 0.1, 1.0, 5.9e3, 1.0 / 3.0, 7.0}) {
    // the product is exact in long double for the 24 bits of a float
    const long double f32 = contractive_factor<float>(l);
    EXPECT_LE(f32 * static_cast<long double>(l), 1.0L) << l;
    EXPECT_GT(f32 * static_cast<long double>(l), 1.0L - 0x1p-22L) << l;
    const double f64 = contractive_factor<double>(l);
    EXPECT_LE(std::fma(f64, l, -1.0), 0.0) << l;
    EXPECT_GT(std::fma(f64, l, -1.0), -0x1p-50) << l;
  }
  EXPECT_EQ(contractive_factor<double>(0.0), 1.0);
  EXPECT_THROW(contractive_factor<double>(Magnitude(1e300) * 1e300),
               std::invalid_argument);
}

MlpWeights random_mlp(Activation activation) {
  const Rng rng(7);
  return {.up = gaussian(4, 9, rng.split(0)),
          .down = gaussian(9, 4, rng.split(1)),
          .up_bias = flatten(gaussian(1, 9, rng.split(2))),
          .activation = activation};
}

TEST(ContractiveMlp, HasAJacobianOfNormAtMostOne) {
  for (const Activation a : {Activation::gelu, Activation::relu})
    for (const Norm norm : {Norm::two, Norm::inf}) {
      const MapPtr<double> f = contractive_mlp<double>(random_mlp(a), norm);
      for (const double size : {0.3, 1.0, 5.0}) {
        const Matrix x = size * gaussian(3, 4, Rng(8));
        const OperatorPtr<double> j = f->linearize(x);
        const Matrix dense = materialize(*j);
        const double steepness =
            norm == Norm::two ? weight_norm_above(dense) : row_sum_above(dense);
        EXPECT_LE(steepness, 1.0);
        EXPECT_LT(check_derivative(*f, x, Rng(9)).error, 1e-8);
        EXPECT_LT(adjoint_defect(*j, Rng(10)), 1e-13);
      }
    }
}

// |W_up| has column sums 4, 6 and |W_down| 5: 6·5 in the inf-norm for relu; one
// hidden unit at a time the 2-norms are √(1+9) … as singular values
TEST(ContractiveMlp, BoundIsTheFormulaWorkedByHand) {
  MlpWeights w{.activation = Activation::relu};
  w.up.resize(2, 2);
  w.up << 1.0, -2.0, -3.0, 4.0;
  w.down.resize(2, 1);
  w.down << 2.0, -3.0;
  EXPECT_NEAR(mlp_lipschitz(w, Norm::inf).value(), 30.0, 1e-10);
  // σ₁² of [[1,−2],[−3,4]] is 15 + √221, |W_down|² = 13
  EXPECT_NEAR(mlp_lipschitz(w, Norm::two).value(),
              std::sqrt((15.0 + std::sqrt(221.0)) * 13.0), 1e-8);
  w.activation = Activation::gelu;
  EXPECT_NEAR(mlp_lipschitz(w, Norm::inf).value(), 30.0 * 1.1290, 1e-10);
  w.gate = w.up;
  EXPECT_THROW(mlp_lipschitz(w, Norm::inf), std::invalid_argument);
}

TEST(SpectralCap, BringsTheNormToTheCapAndLeavesSmallOnesAlone) {
  const Matrix w = gaussian(7, 5, Rng(1));
  for (const double cap : {1.0, 0.3}) {
    const Matrix capped = spectral_cap(w, cap);
    EXPECT_LE(weight_norm_above(capped), cap);
    EXPECT_GT(weight_norm_above(capped), cap * (1.0 - 1e-9));
    EXPECT_LT((capped / capped.norm() - w / w.norm()).norm(), 1e-14);
  }
  EXPECT_EQ(spectral_cap(w, 100.0), w);
  EXPECT_THROW(spectral_cap(w, 0.0), std::invalid_argument);
}

}  // namespace contractive_test
}  // namespace lipscope
