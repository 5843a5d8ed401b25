// The softmax of [Yudin25].

#include "lipscope/theory/yudin25.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/theory/cases.h"

namespace lipscope {
namespace yudin25_test {

using test::norm2;

TEST(Yudin25, G1) {
  // ½(1 − ½ + 0.3); and at most ½
  EXPECT_NEAR(yudin25_g1(Vector{{0.2, 0.5, 0.3}}), 0.4, 1e-12);
  EXPECT_NEAR(yudin25_g1(Vector{{0.5, 0.5}}), 0.5, 1e-12);
  EXPECT_NEAR(yudin25_g1(Vector{{1.0}}), 0.0, 1e-12);
  EXPECT_NEAR(yudin25_local(2, 3, 5, 0.25).value(), 2 + 2 * 9 * 5 * 0.25,
              1e-12);
}

TEST(FalseForms, SoftmaxIsNotAQuarterLipschitz) {
  // diag(p) − ppᵀ at p = (½, ½) has norm ½ [Nair25]
  const Vector p = Vector{{0.5, 0.5}};
  const Matrix J = Matrix(p.asDiagonal()) - p * p.transpose();
  EXPECT_NEAR(norm2(J), 0.5, 1e-15);
}

}  // namespace yudin25_test
}  // namespace lipscope
