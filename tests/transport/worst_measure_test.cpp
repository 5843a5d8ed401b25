#include "lipscope/transport/worst_measure.h"

#include <gtest/gtest.h>

#include "lipscope/transport/local_constant.h"
#include "tests/transport/measures.h"

namespace lipscope {
namespace worst_measure_test {

using test::scalar_layer;

// by a scan of w over 200,000 values of the closed form: γR², the constant and
// the rarer atom's mass
struct Known {
  double gamma, value, mass;
};
const Known known[] = {{1, 3.06867956, 0.0690},
                       {2, 12.9963212, 0.00762},
                       {3, 48.0676641, 0.000949},
                       {4, 165.845519, 0.000124}};

TEST(WorstMeasure, FindsTheMassesOfTwoAtoms) {
  for (const Known& k : known) {
    const Measure start = uniform_measure(Matrix{{-1.0}, {1.0}}, Mask::none);
    const WorstMeasure w =
        worst_measure(scalar_layer(-k.gamma), {}, start, {.restarts = 3});
    EXPECT_NEAR(w.value, k.value, 1e-6 * k.value);
    EXPECT_NEAR(w.measure.mass.minCoeff(), k.mass, 0.02 * k.mass);
    EXPECT_EQ(w.measure.x, start.x);
    EXPECT_EQ(w.found.size(), 4u);
    EXPECT_GT(w.evaluations, 10);
    EXPECT_NEAR(
        w.value,
        local_constant(scalar_layer(-k.gamma), {}, w.measure).moving.lower,
        1e-10 * w.value);
  }
}

TEST(WorstMeasure, MovesAtomsWhereTheyAreWorst) {
  // atoms that start inside the ball of radius 1 find its ends, or better
  const Measure start = uniform_measure(Matrix{{-0.5}, {0.4}}, Mask::none);
  const WorstMeasure w = worst_measure(scalar_layer(-2), {}, start,
                                       {.radius = 1.0, .restarts = 3});
  EXPECT_GE(w.value, 12.9963 * (1 - 1e-4));
  EXPECT_LE(w.measure.x.cwiseAbs().maxCoeff(), 1 + 1e-12);
  EXPECT_LT(w.start, w.value);
}

TEST(WorstMeasure, CountsSplittingWhereAsked) {
  // where cutting does more than moving, at the start of the climb
  const Measure start =
      make_measure(Matrix{{0.0}, {10.0}}, Vector{{0.99, 0.01}});
  const AttentionWeights w = scalar_layer(-1);
  const WorstMeasure split =
      worst_measure(w, {}, start, {.splitting = true, .restarts = 0});
  const WorstMeasure whole = worst_measure(w, {}, start, {.restarts = 0});
  EXPECT_NEAR(split.start, 0.99, 1e-9);
  EXPECT_NEAR(whole.start, 0.100503781526, 1e-9);
  // its best is a·Cov = 100/4 at the token 0, for equal masses
  EXPECT_GE(split.value, 25.0 * (1 - 1e-6));
  EXPECT_NEAR(split.value, local_constant(w, {}, split.measure).lower(),
              1e-9 * split.value);
}

TEST(WorstMeasure, DoesNotDependOnTheNumberOfThreads) {
  const Measure start = uniform_measure(gaussian(3, 2, Rng(1)), Mask::none);
  const test::LayerCase c{.d = 2};
  const AttentionWeights layer = test::random_layer(c);
  const auto search = [&](int threads) {
    return worst_measure(
        layer, {}, start,
        {.restarts = 3, .max_steps = 5, .seed = 7, .threads = threads});
  };
  const WorstMeasure one = search(1), two = search(2);
  EXPECT_EQ(one.found, two.found);
  EXPECT_EQ(one.measure.mass, two.measure.mass);
}

TEST(WorstMeasure, RefusesWhatItCannotClimb) {
  const AttentionWeights w = scalar_layer(1);
  const auto refuses = [&](const Measure& m, const WorstMeasureOptions& o) {
    EXPECT_THROW(worst_measure(w, {}, m, o), std::invalid_argument);
  };
  const Matrix two{{1.0}, {2.0}};
  refuses(uniform_measure(two, Mask::causal), {});
  refuses(uniform_measure(two, Mask::none), {.radius = 1.5});
  refuses(uniform_measure(two, Mask::none), {.radius = -1.0});
  refuses(uniform_measure(Matrix::Ones(65, 1), Mask::none), {});
}

}  // namespace worst_measure_test
}  // namespace lipscope
