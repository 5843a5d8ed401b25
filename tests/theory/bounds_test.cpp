// Bounds of L2, cosine and sigmoid attention against inputs that try to break
// them.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/theory/cases.h"

namespace lipscope {
namespace bounds_test {

TEST(Bounds, NoInputExceedsThem) {
  for (const Kind kind : {Kind::l2, Kind::cosine, Kind::sigmoid})
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      test::Trial t = test::trial(kind, seed);
      const double R = test::radius(t.x);
      if (seed % 4 < 2) t.x = test::climb(t, R, 12, Rng(seed).split(50));
      const Matrix J = test::jacobian(t);
      for (const Bound& b : bounds(t.weights, test::setting_of(t, R)))
        EXPECT_LE(test::measured(J, b.norm, t.x.rows(), Rng(seed)),
                  b.value * (1 + 1e-9))
            << b.name << " seed " << seed;
    }
}

}  // namespace bounds_test
}  // namespace lipscope
