// The n-free bounds of theory/ hold for measures, cut or not, masked or not.

#include <gtest/gtest.h>

#include "lipscope/theory/bounds.h"
#include "lipscope/transport/local_constant.h"
#include "lipscope/transport/ratio.h"
#include "lipscope/transport/worst_measure.h"
#include "tests/transport/measures.h"

namespace lipscope {
namespace bounds_slow_test {

using test::LayerCase;

double radius(const Measure& m) {
  return m.x.rowwise().norm().maxCoeff() * (1 + 1e-12);
}

// the bounds in W₂, or in the conditional distance, over the ball of radius R
std::vector<Bound> meanfield_bounds(const AttentionWeights& w, Mask mask,
                                    double R) {
  std::vector<Bound> kept;
  for (const Bound& b : bounds(w, {.mask = mask, .n = 5, .radius = R}))
    if (b.norm == Norm::w2) kept.push_back(b);
  return kept;
}

// a random layer, measure and scale; half with biases, half masked, with tokens
// that coincide and masses that differ by many orders of magnitude
struct Case {
  LayerCase layer;
  AttentionWeights weights;
  Measure mu;
};

Case random_case(std::uint64_t seed) {
  Case c;
  c.layer = {.mask = seed % 2 == 0 ? Mask::none : Mask::causal,
             .heads = 1 + static_cast<Index>(seed % 3),
             .fills = false,
             .biases = seed % 4 > 1,
             .output = seed % 5 > 0,
             .seed = seed,
             .n = 2 + static_cast<Index>(seed % 5),
             .d = 1 + static_cast<Index>(seed % 4)};
  Rng rng = Rng(seed).split(77);
  c.weights = test::random_layer(c.layer);
  if (seed % 3 == 0) c.weights.query = -c.weights.key;
  const Vector logs = 4.0 * gaussian(c.layer.n, 1, rng.split(1));
  Vector mass = (logs.array() - logs.maxCoeff()).exp().max(1e-9);
  mass /= mass.sum();
  Matrix x = std::exp(2 * rng.normal()) * test::random_tokens(c.layer);
  if (seed % 7 == 0) x.row(1) = x.row(0);
  c.mu = make_measure(x, mass,
                      c.layer.mask == Mask::causal
                          ? test::paired_positions(c.layer.n)
                          : Vector());
  return c;
}

TEST(MeanFieldBounds, AreNeverBelowAnyMeasure) {
  double closest = 0.0;
  for (std::uint64_t seed = 0; seed < 6000; ++seed) {
    const Case c = random_case(seed);
    const LocalConstant at =
        local_constant(c.weights, {.threads = 1}, c.mu, {.threads = 1});
    const auto all = meanfield_bounds(c.weights, c.layer.mask, radius(c.mu));
    EXPECT_EQ(all.size(),
              c.layer.mask == Mask::none && !c.layer.biases ? 2 : 1);
    for (const Bound& b : all) {
      EXPECT_LE(at.lower(), b.value) << b.name << ", " << c.layer.name();
      closest = std::max(closest, at.lower() / b.value);
    }
    ASSERT_TRUE(at.upper());
    EXPECT_LE(at.lower(), *at.upper());
  }
  // (they are not far away either)
  EXPECT_GT(closest, 0.5);
}

TEST(MeanFieldBounds, AreNotReachedByClimbing) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const LayerCase c{.fills = false,
                      .biases = seed % 2 == 0,
                      .seed = seed,
                      .n = 2 + static_cast<Index>(seed % 2),
                      .d = 1 + static_cast<Index>(seed % 2)};
    AttentionWeights w = test::random_layer(c);
    if (seed % 3 > 0) w.query = -w.key;
    const double R = seed % 4 == 0 ? 3.0 : 1.0;
    Matrix x = gaussian(c.n, c.d, Rng(seed));
    x.rowwise().normalize();
    const WorstMeasure worst = worst_measure(
        w, {}, uniform_measure(R * x, Mask::none),
        {.radius = R, .splitting = true, .restarts = 2, .max_steps = 60});
    for (const Bound& b : meanfield_bounds(w, Mask::none, R * (1 + 1e-12)))
      EXPECT_LE(worst.value, b.value) << b.name << ", seed " << seed;
  }
}

TEST(MeanFieldBounds, HoldForDistancesThatAreNotSmall) {
  // any two measures of the ball, of different tokens and masses
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const Case c = random_case(seed);
    Case other = random_case(seed);
    other.mu.x =
        0.9 * radius(c.mu) * gaussian(c.layer.n, c.layer.d, Rng(seed).split(5));
    for (Index i = 0; i < c.layer.n; ++i)
      other.mu.x.row(i) *= std::min(
          1.0, radius(c.mu) / std::max(other.mu.x.row(i).norm(), 1e-300));
    if (!c.mu.masked())
      other.mu.mass =
          make_measure(c.mu.x, test::random_masses(c.layer.n, seed)).mass;
    const TransportRatio r =
        transport_ratio(c.weights, {.threads = 1}, c.mu, other.mu);
    for (const Bound& b :
         meanfield_bounds(c.weights, c.layer.mask, radius(c.mu) * (1 + 1e-9)))
      EXPECT_LE(r.lower, b.value) << b.name << ", seed " << seed;
    EXPECT_LE(r.relative_gap, 1e-9) << seed;
  }
}

}  // namespace bounds_slow_test
}  // namespace lipscope
