#include "lipscope/control/invert.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/control/contractive.h"
#include "tests/support/layers.h"

namespace lipscope {
namespace invert_test {

// x ↦ xA for each token: the iteration is a Neumann series
class Linear final : public Map<double> {
 public:
  explicit Linear(Matrix a) : a_(std::move(a)) {}
  Matrix operator()(const Matrix& x) const override { return x * a_; }
  OperatorPtr<double> linearize(const Matrix&) const override {
    throw std::logic_error("not asked for");
  }

 private:
  Matrix a_;
};

TEST(SequenceNorm, IsWhatItIsCalled) {
  Matrix x(2, 2);
  x << 3.0, -4.0, 0.0, 2.0;
  EXPECT_DOUBLE_EQ(sequence_norm(x, Norm::two), std::sqrt(29.0));
  EXPECT_DOUBLE_EQ(sequence_norm(x, Norm::inf), 4.0);
  EXPECT_DOUBLE_EQ(sequence_norm(x, Norm::token), 5.0);
  EXPECT_THROW(sequence_norm(x, Norm::w2), std::invalid_argument);
}

// f(x) = x, c = ½, Y = 3: X = 2, and X⁽ᵏ⁾ = 2 + (−½)ᵏ. Steps are 3·2⁻ᵏ, the
// error 2⁻ᵏ is ⅓ of the step, and the bound q/(1−q)·s_k = s_k. For 2⁻¹⁰·3 the
// bound beforehand, 2·2⁻ᵏ·1.5 ≤ 3·2⁻¹⁰, asks for k = 10.
TEST(Invert, IsTheGeometricSeriesWorkedByHand) {
  const Linear identity(Matrix::Ones(1, 1));
  const ResidualMap g{&identity, 0.5, 1.0};
  const Matrix y = Matrix::Constant(1, 1, 3.0);
  int calls = 0;
  const Inversion r = invert(
      g, y, {.tolerance = 0x1p-10, .keep_going = [&](const InvertStep& s) {
               EXPECT_EQ(s.iteration, ++calls);
               EXPECT_EQ(s.x(0, 0), 2.0 + std::pow(-0.5, calls));
               EXPECT_EQ(s.step, 3.0 * std::pow(0.5, calls));
               EXPECT_NEAR(*s.error_bound, s.step, 1e-11);
               return true;
             }});
  EXPECT_EQ(r.status, InvertStatus::converged);
  EXPECT_EQ(r.contraction, 0.5);
  EXPECT_EQ(r.a_priori, 10);
  // rounding is allowed for: the eleventh brings the bound below for certain
  EXPECT_EQ(r.iterations, 11);
  EXPECT_EQ(calls, 11);
  EXPECT_EQ(r.worst_ratio, 0.5);
  EXPECT_EQ(r.residual, 1.5 * 0x1p-11);
  EXPECT_LE(std::abs(r.x(0, 0) - 2.0), *r.error_bound);
}

// f(x) = −3x, c = ½: X ↦ Y + 1.5X runs away though g is invertible
TEST(Invert, SaysWhenItDiverges) {
  const Linear steep(Matrix::Constant(1, 1, -3.0));
  const Matrix y = Matrix::Constant(1, 1, 1.0);
  const Inversion r = invert({&steep, 0.5, 3.0}, y);
  EXPECT_EQ(r.status, InvertStatus::diverged);
  EXPECT_FALSE(r.contraction || r.a_priori || r.error_bound || r.rounding);
  EXPECT_DOUBLE_EQ(r.worst_ratio, 1.5);
  EXPECT_TRUE(r.x.allFinite());
  EXPECT_GT(r.residual, 1e5);
}

// f(x) = 2x, c = ½: X jumps between two points for ever
TEST(Invert, SaysWhenItStaysWhereItIs) {
  const Linear mirror(Matrix::Constant(1, 1, 2.0));
  const Matrix y = Matrix::Constant(1, 1, 1.0);
  const Inversion r = invert({&mirror, 0.5, {}}, y, {.max_iterations = 20});
  EXPECT_EQ(r.status, InvertStatus::not_converged);
  EXPECT_EQ(r.iterations, 20);
  EXPECT_EQ(r.residual, 1.0);
}

TEST(Invert, StopsWhenToldTo) {
  const Linear identity(Matrix::Ones(1, 1));
  const Inversion r = invert(
      {&identity, 0.9, 1.0}, Matrix::Ones(1, 1),
      {.keep_going = [](const InvertStep& s) { return s.iteration < 3; }});
  EXPECT_EQ(r.iterations, 3);
  EXPECT_EQ(r.status, InvertStatus::not_converged);
}

// A tolerance below rounding is not met, and the iteration sees that.
TEST(Invert, EndsWhereRoundingIsAllThatIsLeft) {
  const Linear identity(Matrix::Ones(1, 1));
  const Inversion r =
      invert({&identity, 0.5, 1.0}, Matrix::Ones(1, 1), {.tolerance = 1e-30});
  EXPECT_EQ(r.status, InvertStatus::not_converged);
  EXPECT_LT(r.iterations, 60);
  EXPECT_NEAR(r.x(0, 0), 2.0 / 3.0, 1e-13);
  EXPECT_LT(*r.error_bound, 1.2 * *r.rounding);
}

TEST(Invert, RefusesNonsense) {
  const Linear identity(Matrix::Ones(1, 1));
  const Matrix y = Matrix::Ones(1, 1);
  EXPECT_THROW(invert({}, y), std::invalid_argument);
  EXPECT_THROW(invert({&identity, 0.0, 1.0}, y), std::invalid_argument);
  EXPECT_THROW(invert({&identity, 0.5, 1.0}, Matrix::Constant(1, 1, NAN)),
               std::invalid_argument);
  const Linear widens(Matrix::Ones(1, 2));
  EXPECT_THROW(invert({&widens, 0.5, 1.0}, y), std::invalid_argument);
}

// In the norm of the divisor: the bound holds at each step, the count
// beforehand is enough, and steps shrink by c at least.
TEST(Invert, ContractiveAttentionKeepsEveryPromise) {
  for (const double c : {0.5, 0.7, 0.9})
    for (const Mask mask : {Mask::none, Mask::causal})
      for (const double size : {1.0, 10.0}) {
        const test::LayerCase make{
            .kind = Kind::l2, .mask = mask, .heads = 2, .biases = true};
        const ContractiveL2<double> f(test::random_layer(make),
                                      test::options_of(make));
        const ResidualMap g{&f, c, 1.0};
        const Matrix x = test::random_tokens(make, size);
        const Inversion r = invert(
            g, g(x), {.keep_going = [&](const InvertStep& s) {
              EXPECT_LE(sequence_norm(s.x - x, Norm::inf), *s.error_bound);
              return true;
            }});
        EXPECT_EQ(r.status, InvertStatus::converged);
        EXPECT_LE(r.iterations, *r.a_priori + 1);
        EXPECT_LE(r.worst_ratio, c * 1.002);
        EXPECT_LE(*r.error_bound,
                  1e-10 * std::max(1.0, sequence_norm(g(x), Norm::inf)));
        EXPECT_LT(sequence_norm(r.x - x, Norm::inf), 1e-12 * size);
      }
}

// One head in one dimension at the tokens where Kim21's bound is nearly
// attained: here c is what the steps really shrink by, up to a tenth or two.
TEST(Invert, SlowestContractionComesNearItsPromise) {
  AttentionWeights w;
  w.query = w.value = Matrix::Ones(1, 1);
  const Index n = 101;
  const ContractiveL2<double> f(w, {.kind = Kind::l2});
  const double c = 0.9, p = (f.bound(n).value() - 1.0) / 4.0;
  Matrix x = Matrix::Zero(n, 1);
  for (Index i = 1; i < n; ++i)
    x(i, 0) = (i % 2 == 1 ? 1.0 : -1.0) * std::sqrt(p + 1.0);
  // a token a little beside the steepest point, which is not where g(x) is
  x(0, 0) = 1e-3;
  const ResidualMap g{&f, c, 1.0};
  const Inversion r = invert(g, g(x));
  EXPECT_EQ(r.status, InvertStatus::converged);
  EXPECT_LE(r.worst_ratio, c * 1.002);
  EXPECT_GT(r.worst_ratio, 0.25 * c);
  EXPECT_LE(sequence_norm(r.x - x, Norm::inf), *r.error_bound + *r.rounding);
}

// q = 3/4 twice and f = identity: e_1 = 4 e_2 + ε_1
TEST(InvertStack, PropagatesTheErrorBackwards) {
  const Linear identity(Matrix::Ones(1, 1));
  const ResidualMap g{&identity, 0.75, 1.0};
  const Matrix x = Matrix::Constant(1, 1, 2.0);
  const StackInversion r = invert_stack({g, g}, g(g(x)), {.tolerance = 1e-6});
  ASSERT_EQ(r.each.size(), 2u);
  EXPECT_EQ(r.status, InvertStatus::converged);
  EXPECT_NEAR(*r.error_bound,
              4.0 * *r.each[0].error_bound + *r.each[1].error_bound, 1e-12);
  EXPECT_LE(std::abs(r.x(0, 0) - 2.0), *r.error_bound);
  EXPECT_GT(std::abs(r.x(0, 0) - 2.0), 1e-3 * *r.error_bound);
}

TEST(InvertStack, RecoversTokensThroughAttentionAndMlp) {
  const test::LayerCase make{.kind = Kind::l2, .heads = 3};
  const ContractiveL2<double> attention(test::random_layer(make),
                                        {.kind = Kind::l2});
  const MapPtr<double> mlp =
      contractive_mlp<double>({.up = gaussian(make.d, 20, Rng(1)),
                               .down = gaussian(20, make.d, Rng(2))},
                              Norm::inf);
  const std::vector<ResidualMap> maps = {{&attention, 0.9, 1.0},
                                         {mlp.get(), 0.8, 1.0},
                                         {&attention, 0.7, 1.0},
                                         {mlp.get(), 0.9, 1.0}};
  const Matrix x = test::random_tokens(make);
  Matrix y = x;
  for (const ResidualMap& g : maps) y = g(y);
  const StackInversion r = invert_stack(maps, y);
  EXPECT_EQ(r.status, InvertStatus::converged);
  EXPECT_LE(sequence_norm(r.x - x, Norm::inf), *r.error_bound + *r.rounding);
  EXPECT_LT(sequence_norm(r.x - x, Norm::inf), 1e-11);
  // inverted in the wrong order it is something else
  EXPECT_GT(sequence_norm(invert_stack({maps.rbegin(), maps.rend()}, y).x - x,
                          Norm::inf),
            1e-6);
}

TEST(InvertStack, EndsWhereABlockDiverges) {
  const Linear identity(Matrix::Ones(1, 1)), steep(Matrix::Constant(1, 1, -4.));
  const StackInversion r = invert_stack(
      {{&identity, 0.5, 1.0}, {&steep, 0.9, {}}}, Matrix::Ones(1, 1));
  EXPECT_EQ(r.status, InvertStatus::diverged);
  EXPECT_EQ(r.each.size(), 1u);
  EXPECT_FALSE(r.error_bound);
}

}  // namespace invert_test
}  // namespace lipscope
