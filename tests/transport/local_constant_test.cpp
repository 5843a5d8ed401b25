#include "lipscope/transport/local_constant.h"

#include <gtest/gtest.h>

#include "lipscope/attention/dense.h"
#include "lipscope/spectral/dense.h"
#include "tests/transport/measures.h"

namespace lipscope {
namespace local_constant_test {

using test::LayerCase;
using test::scalar_layer;

// (1 − w)δ_0 + wδ_x, x = 1/√w
Measure one_and_a_rare_one(double w) {
  return make_measure(Matrix{{0.0}, {1 / std::sqrt(w)}}, Vector{{1 - w, w}});
}

TEST(MassSplitting, IsTheTableOfTheTheory) {
  // d = 1, V = 1, A = −1; computed by a script from the closed forms
  struct Row {
    double w, moving, splitting;
  };
  for (const Row& row :
       {Row{0.25, 0.591034058865, 0.75}, Row{0.1, 0.333348538971, 0.9},
        Row{0.01, 0.100503781526, 0.99}, Row{0.001, 0.0316385998584, 0.999}}) {
    const LocalConstant c =
        local_constant(scalar_layer(-1), {}, one_and_a_rare_one(row.w));
    EXPECT_NEAR(c.moving.lower, row.moving, 1e-11);
    EXPECT_NEAR(c.splitting.lower, row.splitting, 1e-11);
    EXPECT_EQ(c.token, 0);
    EXPECT_TRUE(c.splits());
    EXPECT_EQ(c.lower(), c.splitting.lower);
    EXPECT_TRUE(c.converged);
    ASSERT_TRUE(c.upper());
    EXPECT_GE(*c.upper(), c.lower());
    EXPECT_LT(*c.upper(), c.lower() * (1 + 1e-8));
  }
}

TEST(MassSplitting, IsWhatDuplicatingTokensBrings) {
  const Measure m = uniform_measure(Matrix{{9.531}, {0.796}}, Mask::none);
  const AttentionWeights w = scalar_layer(-0.345);
  const LocalConstant c = local_constant(w, {}, m);
  EXPECT_NEAR(c.moving.lower, 1.35338514647, 1e-10);
  EXPECT_NEAR(c.splitting.lower, 2.00930370334, 1e-10);
  const LocalConstant twice = local_constant(w, {}, split_evenly(m, 2));
  EXPECT_NEAR(twice.moving.lower, 2.00930370334, 1e-10);
  // the plain sequence, every token twice: nothing of this folder
  const Matrix x{{9.531}, {9.531}, {0.796}, {0.796}};
  EXPECT_NEAR(dense_norm(dense_jacobian(w, {}, x)).value, 2.00930370334, 1e-10);
}

TEST(MassSplitting, IsTheDuplicateTokenIdentity) {
  // with masses, several heads, biases, shared positions; and it must be seen
  // to matter: some layers split, others do not
  int splitting = 0, moving = 0;
  for (const LayerCase& c : test::measure_cases())
    for (const bool rare : {false, true}) {
      AttentionWeights w = test::random_layer(c);
      Measure m = test::random_measure(c, 3.0);
      if (rare) {
        // most mass at 0, rare tokens far away that it turns from: moving it
        // moves everything along, cutting it does not
        if (c.kind == Kind::dot) w.query = -w.key;
        Matrix x = test::random_tokens(c, 8.0);
        x.row(0).setZero();
        Vector mass = Vector::Constant(c.n, 0.02);
        mass[0] = 1.0 - 0.02 * static_cast<double>(c.n - 1);
        m = make_measure(x, mass, m.position);
      }
      const LocalConstant once = local_constant(w, {.kind = c.kind}, m);
      (once.splits() ? splitting : moving) += 1;
      for (const Index pieces : {2, 3}) {
        const Measure cut = split_evenly(m, pieces);
        const double norm =
            local_constant(w, {.kind = c.kind}, cut).moving.lower;
        EXPECT_NEAR(norm, once.lower(), 1e-8 * norm) << c.name() << rare;
      }
    }
  EXPECT_GE(splitting, 5);
  EXPECT_GE(moving, 5);
}

TEST(MassSplitting, HoldsOnManyUniformSequences) {
  // ‖J(X dup)‖ = max(‖J(X)‖, max_i ‖Σ_h A_h Cov_i^h V_h‖), from the dense
  // oracle
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const LayerCase c{.kind = all_kinds[seed % 4],  // all but sigmoid
                      .heads = 1 + static_cast<Index>(seed % 3),
                      .fills = false,
                      .biases = seed % 8 > 3,
                      .output = seed % 5 > 0,
                      .seed = seed,
                      .n = 3,
                      .d = 4};
    const AttentionWeights w = test::random_layer(c);
    const Matrix x = test::random_tokens(c, 4.0);
    Matrix twice(6, 4);
    twice << x, x;
    const double expected =
        dense_norm(dense_jacobian(w, {.kind = c.kind}, twice)).value;
    const LocalConstant found =
        local_constant(w, {.kind = c.kind}, uniform_measure(x, Mask::none));
    EXPECT_NEAR(found.lower(), expected, 1e-8 * expected) << c.name();
  }
}

TEST(MassSplitting, IsFalseForTokensRepeatedUnderACausalMask) {
  // X = (0, 2), A = −1: repeating each token at the next position is another
  // sequence, whose norm is neither of the two
  const AttentionWeights w = scalar_layer(-1);
  const Matrix x{{0.0}, {2.0}}, twice{{0.0}, {0.0}, {2.0}, {2.0}};
  const AttentionOptions causal{.mask = Mask::causal};
  const LocalConstant c =
      local_constant(w, causal, uniform_measure(x, Mask::causal));
  const double repeated = dense_norm(dense_jacobian(w, causal, twice)).value;
  EXPECT_GT(std::abs(repeated - c.lower()), 0.01 * c.lower());
  EXPECT_GT(std::abs(repeated - c.moving.lower), 0.01 * repeated);
}

TEST(LocalConstant, OfASequenceIsTheNormOfItsJacobian) {
  for (const LayerCase& c : test::measure_cases()) {
    const AttentionWeights w = test::random_layer(c);
    const Matrix x = test::random_tokens(c);
    const double norm =
        dense_norm(dense_jacobian(w, test::options_of(c), x)).value;
    const LocalConstant found =
        local_constant(w, {.kind = c.kind}, uniform_measure(x, c.mask));
    EXPECT_NEAR(found.moving.lower, norm, 1e-12 * norm) << c.name();
  }
}

TEST(LocalConstant, ComesWithDirectionsThatAttainIt) {
  for (const LayerCase& c : test::measure_cases()) {
    const AttentionWeights w = test::random_layer(c);
    const Measure m = test::random_measure(c, 3.0);
    const AttentionOptions options = options_on(m, {.kind = c.kind});
    const LocalConstant found = local_constant(w, {.kind = c.kind}, m);
    const auto length = [&](const Matrix& dx) {
      return std::sqrt(m.mass.dot(dx.rowwise().squaredNorm()));
    };
    EXPECT_NEAR(length(found.displacement), 1.0, 1e-12);
    const Matrix jacobian = dense_jacobian(w, options, m.x);
    const Vector dy = jacobian * flatten(found.displacement);
    EXPECT_NEAR(length(unflatten(dy, c.n, dy.size() / c.n)), found.moving.lower,
                1e-10 * found.moving.lower);
    EXPECT_NEAR(found.splitting.direction.norm(), 1.0, 1e-12);
    EXPECT_EQ(found.splitting.lower, found.splitting_norms[found.token]);
  }
}

TEST(LocalConstant, IsFoundByIterationsToo) {
  // masked, where the first token sees itself alone and does not split
  const LayerCase c{.heads = 3, .biases = true, .n = 12, .d = 12};
  const AttentionWeights w = test::random_layer(c);
  const Measure m = uniform_measure(test::random_tokens(c, 3.0), Mask::causal);
  const LocalConstant dense = local_constant(w, {}, m);
  const LocalConstant found = local_constant(
      w, {}, m, {.tolerance = 1e-7, .enclose = 1.2, .dense_limit = 0});
  EXPECT_NEAR(found.moving.lower, dense.moving.lower,
              1e-6 * dense.moving.lower);
  for (Index i = 0; i < c.n; ++i)
    EXPECT_NEAR(found.splitting_norms[i], dense.splitting_norms[i],
                1e-6 * dense.splitting_norms[i]);
  EXPECT_EQ(dense.splitting_norms[0], 0.0);
  EXPECT_TRUE(found.converged);
  EXPECT_EQ(found.token, dense.token);
  EXPECT_FALSE(found.upper());
  ASSERT_TRUE(found.upper_whp());
  EXPECT_GE(*found.upper_whp(), dense.lower());
  EXPECT_LE(*found.upper_whp(), 1.3 * dense.lower());
}

TEST(LocalConstant, OfASingleTokenIsItsValuePath) {
  const LocalConstant c = local_constant(
      scalar_layer(-2), {}, uniform_measure(Matrix{{3.0}}, Mask::none));
  EXPECT_NEAR(c.moving.lower, 1.0, 1e-15);
  EXPECT_EQ(c.splitting.lower, 0.0);
  EXPECT_FALSE(c.splits());
}

}  // namespace local_constant_test
}  // namespace lipscope
