#include "lipscope/transport/ratio.h"

#include <gtest/gtest.h>

#include "lipscope/transport/local_constant.h"
#include "tests/transport/measures.h"

namespace lipscope {
namespace ratio_test {

using test::LayerCase;

TEST(TransportRatio, AgreesWithTheFormulaWhereTokensMoveWhole) {
  for (const LayerCase& c : test::measure_cases()) {
    const AttentionWeights w = test::random_layer(c);
    const Measure m = test::random_measure(c, 2.0);
    const LocalConstant at = local_constant(w, {.kind = c.kind}, m);
    const TransportRatio r = transport_ratio(w, {.kind = c.kind}, m,
                                             moved(m, at.displacement, 1e-6));
    EXPECT_NEAR(r.before.value, 1e-6, 1e-13);
    EXPECT_NEAR(r.value, at.moving.lower, 1e-3 * r.value) << c.name();
    EXPECT_LE(r.lower, r.value);
    EXPECT_LE(r.relative_gap, 1e-9) << c.name();
  }
}

TEST(TransportRatio, AgreesWithTheFormulaWhereATokenIsCut) {
  for (const LayerCase& c : test::measure_cases()) {
    const AttentionWeights w = test::random_layer(c);
    const Measure m = test::random_measure(c, 2.0);
    const LocalConstant at = local_constant(w, {.kind = c.kind}, m);
    const Measure cut = parted(m, at.token, at.splitting.direction, 1e-5);
    const TransportRatio r = transport_ratio(w, {.kind = c.kind}, m, cut);
    EXPECT_NEAR(r.before.value, 1e-5 * std::sqrt(m.mass[at.token]), 1e-11);
    EXPECT_NEAR(r.value, at.splitting.lower, 1e-3 * r.value) << c.name();
    EXPECT_LE(r.relative_gap, 1e-9) << c.name();
  }
}

TEST(TransportRatio, OfTheTheorysTableIsLargerWithACutThanWithout) {
  const Measure m = make_measure(Matrix{{0.0}, {10.0}}, Vector{{0.99, 0.01}});
  const AttentionWeights w = test::scalar_layer(-1);
  const LocalConstant at = local_constant(w, {}, m);
  const double whole =
      transport_ratio(w, {}, m, moved(m, at.displacement, 1e-6)).value;
  const double cut =
      transport_ratio(w, {}, m,
                      parted(m, at.token, at.splitting.direction, 1e-5))
          .value;
  EXPECT_NEAR(whole, 0.1005, 1e-4);
  EXPECT_NEAR(cut, 0.9900, 1e-3);
}

TEST(TransportRatio, IsExactAtLargeDistancesAsWell) {
  // A = 0: every output is the mean, so that F contracts a measure to a point
  // and the ratio is |mean(μ) − mean(ν)|/W₂(μ, ν)
  const Vector mass = test::random_masses(6, 1);
  const Measure mu = make_measure(gaussian(6, 2, Rng(1)), mass);
  const Measure nu = make_measure(gaussian(6, 2, Rng(2)), mass);
  AttentionWeights w;
  w.query = w.key = Matrix::Zero(2, 2);
  w.value = Matrix::Identity(2, 2);
  const TransportRatio r = transport_ratio(w, {}, mu, nu);
  const double means = ((mu.x - nu.x).transpose() * mass).norm();
  EXPECT_NEAR(r.after.value, means, 1e-14);
  EXPECT_NEAR(r.value, means / distance(mu, nu).value, 1e-14);
}

TEST(TransportRatio, CutsATokenWhereItStands) {
  const Measure m =
      make_measure(Matrix{{1.0}, {2.0}, {4.0}}, Vector{{0.25, 0.5, 0.25}},
                   Vector{{0.0, 1.0, 1.0}});
  const Measure cut = parted(m, 1, Vector::Ones(1), 0.25);
  EXPECT_EQ(cut.x, (Matrix{{1.0}, {2.25}, {1.75}, {4.0}}));
  EXPECT_EQ(cut.mass, (Vector{{0.25, 0.25, 0.25, 0.25}}));
  EXPECT_EQ(cut.position, (Vector{{0.0, 1.0, 1.0, 1.0}}));
  EXPECT_THROW(parted(m, 3, Vector::Ones(1), 1.0), std::invalid_argument);
  EXPECT_THROW(parted(m, 1, Vector::Ones(2), 1.0), std::invalid_argument);
  EXPECT_THROW(moved(m, Matrix::Ones(2, 1), 1.0), std::invalid_argument);
  EXPECT_THROW(transport_ratio(test::scalar_layer(1), {}, m, m),
               std::invalid_argument);
}

}  // namespace ratio_test
}  // namespace lipscope
