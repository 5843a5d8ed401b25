#include "lipscope/search/region.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/core/rng.h"
#include "tests/support/tolerance.h"

namespace lipscope {
namespace region_test {

NormWeights norm(NormWeights::Kind kind) {
  return {.kind = kind,
          .gain = (Vector(4) << 2, -1, 0.5, 3).finished(),
          .bias = (Vector(4) << 1, 0, -1, 0.5).finished()};
}

std::vector<Region> regions() {
  return {everywhere(), ball(1.5), after_norm(norm(NormWeights::Kind::layer)),
          after_norm(norm(NormWeights::Kind::rms))};
}

double inner(const Matrix& a, const Matrix& b) {
  return a.cwiseProduct(b).sum();
}

// z is nearest to y in a convex set if and only if no point of the set lies on
// y's side of the plane through z
TEST(Region, NearestIsTheNearestPoint) {
  for (const Region& region : regions()) {
    const Matrix y = 3 * gaussian(6, 4, Rng(1));
    const Matrix z = nearest(region, y);
    EXPECT_LT((nearest(region, z) - z).norm(), test::rounding<double>(24));
    EXPECT_LE(z.rowwise().norm().maxCoeff(), region.radius * (1 + 1e-14));
    if (region.centred) {
      EXPECT_LT(z.rowwise().mean().norm(), 1e-14);
    }
    for (std::uint64_t s = 0; s < 50; ++s) {
      const Matrix other = nearest(region, 3 * gaussian(6, 4, Rng(2).split(s)));
      EXPECT_LE(inner(y - z, other - z), 1e-12) << region.scope();
    }
  }
}

TEST(Region, HasTheTokensThatANormLayerMakes) {
  for (const auto kind : {NormWeights::Kind::layer, NormWeights::Kind::rms}) {
    const Region region = after_norm(norm(kind));
    const Matrix x = LayerNorm<double>(norm(kind))(5 * gaussian(8, 4, Rng(3)));
    EXPECT_LT((tokens_of(region, coordinates_of(region, x)) - x).norm(),
              test::rounding<double>(32));
  }
}

TEST(Region, PullsBackByTheAdjoint) {
  for (const Region& region : regions()) {
    // dz within the plane where there is one
    const Matrix dz =
        nearest({.centred = region.centred}, gaussian(6, 4, Rng(4)));
    const Matrix gx = gaussian(6, 4, Rng(5));
    const Matrix dx = tokens_of(region, dz) - tokens_of(region, 0 * dz);
    EXPECT_NEAR(inner(gx, dx), inner(pulled_back(region, gx), dz), 1e-13);
  }
}

TEST(Region, SaysWhatItIs) {
  EXPECT_EQ(everywhere().scope(), "everywhere");
  EXPECT_EQ(ball(2).scope(), "ball of radius 2");
  EXPECT_NE(regions()[2].scope().find("norm layer"), std::string::npos);
  EXPECT_DOUBLE_EQ(regions()[2].radius, 2.0);  // √4
}

TEST(Region, RefusesWhatIsNoRadius) {
  for (const double radius : {0.0, -1.0, HUGE_VAL, std::nan("")})
    EXPECT_THROW(ball(radius), std::invalid_argument) << radius;
}

}  // namespace region_test
}  // namespace lipscope
