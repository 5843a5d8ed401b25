#include "lipscope/model/coordinate_contraction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "lipscope/attention/l2.h"
#include "lipscope/core/rng.h"

namespace lipscope {
namespace coordinate_contraction_test {

// p e^{p+1} = Σ_{t≥1} e^{b_t − b_0}: e² = e² gives 1
TEST(DistancePhiInverse, IsTheFormulaWorkedByHand) {
  const double b = 2 - std::log(2.0);
  EXPECT_NEAR(
      distance_phi_inverse((Vector(3) << 0.7, 0.7 + b, 0.7 + b).finished()),
      1.0, 1e-14);
  EXPECT_EQ(distance_phi_inverse(Vector::Constant(1, 5.0)), 0.0);
  for (const Index n : {2, 9, 64})
    EXPECT_NEAR(distance_phi_inverse(Vector::Constant(n, -3.0)),
                kim21_phi_inverse(n), 1e-12);
  EXPECT_THROW(distance_phi_inverse((Vector(2) << -600, 0).finished()),
               std::invalid_argument);
}

TEST(DistancePhiInverse, HasItsGradient) {
  const Vector b = 2 * gaussian(6, 1, Rng(1));
  Vector g;
  distance_phi_inverse(b, g);
  for (Index t = 0; t < 6; ++t) {
    const Vector step = 1e-6 * Vector::Unit(6, t);
    const double numeric =
        (distance_phi_inverse(b + step) - distance_phi_inverse(b - step)) /
        2e-6;
    EXPECT_NEAR(g[t], numeric, 1e-8);
    EXPECT_NE(g[t], 0.0);
  }
}

// two heads, k = 1, d = 2: W_Q = (1, −2), (0, 3); E = (2, 0), (−1, 4)
TEST(CoordinateContractions, AreTheFormulaWorkedByHand) {
  const Matrix q = (Matrix(2, 2) << 1, 0, -2, 3).finished();
  const Matrix e = (Matrix(2, 2) << 2, 0, -1, 4).finished();
  const Vector c = coordinate_contractions<double>(
      view(q), view(e), (Vector(2) << 0.5, 0.25).finished());
  // N = 3, 3:  4·½·3·2 + 3·2  and  4·¼·3·1 + 3·1;  4·¼·3·4 + 3·4
  EXPECT_NEAR(c[0], 12 + 6 + 3 + 3, 1e-13);
  EXPECT_NEAR(c[1], 12 + 12, 1e-13);
  // k = 2, one head: W_Q = [1 1; 1 −1], W_QW_Qᵀ = 2I, N = 2; E = (3, 4)ᵀ,
  // W_QE = (7, −1)
  const Matrix q2 = (Matrix(2, 2) << 1, 1, 1, -1).finished();
  const Matrix e2 = (Matrix(2, 1) << 3, 4).finished();
  EXPECT_NEAR(coordinate_contractions<double>(view(q2), view(e2),
                                              Vector::Constant(1, 0.75))[0],
              4 * 0.75 * 2 * 5 + 8, 1e-13);
}

TEST(CoordinateContractions, HaveTheirGradients) {
  const Rng rng(2);
  const Matrix q = gaussian(5, 6, rng.split(0));
  Matrix e = gaussian(6, 4, rng.split(1));
  e.col(2).setZero();  // a coordinate that nothing is written to
  const Vector p = gaussian(3, 1, rng.split(2)).cwiseAbs();
  const Vector g = gaussian(4, 1, rng.split(3));
  const auto value = [&](const Matrix& a, const Matrix& b, const Vector& c) {
    return g.dot(coordinate_contractions<double>(view(a), view(b), c));
  };
  Matrix gq = Matrix::Zero(5, 6), ge = Matrix::Zero(6, 4);
  const Vector gp = coordinate_contractions_backward<double>(
      view(q), view(std::as_const(e)), p, g, view(gq), view(ge));
  EXPECT_EQ(ge.col(2).norm(), 0.0);

  const Matrix dq = gaussian(5, 6, rng.split(4));
  Matrix de = gaussian(6, 4, rng.split(5));
  de.col(2).setZero();
  const Vector dp = gaussian(3, 1, rng.split(6));
  const double h = 1e-6;
  const auto near = [](double exact, double numeric) {
    EXPECT_NEAR(exact, numeric, 1e-6 * std::abs(numeric));
    EXPECT_NE(exact, numeric);
  };
  near(gq.cwiseProduct(dq).sum(),
       (value(q + h * dq, e, p) - value(q - h * dq, e, p)) / (2 * h));
  near(ge.cwiseProduct(de).sum(),
       (value(q, e + h * de, p) - value(q, e - h * de, p)) / (2 * h));
  near(gp.dot(dp),
       (value(q, e, p + h * dp) - value(q, e, p - h * dp)) / (2 * h));
}

}  // namespace coordinate_contraction_test
}  // namespace lipscope
