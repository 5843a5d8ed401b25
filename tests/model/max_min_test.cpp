#include "lipscope/model/max_min.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lipscope/core/rng.h"
#include "lipscope/model/mlp.h"
#include "lipscope/operators/check.h"
#include "lipscope/spectral/dense.h"

namespace lipscope {
namespace max_min_test {

MlpWeights random_mlp(std::uint64_t seed) {
  const Rng rng(seed);
  return {.up = gaussian(4, 6, rng.split(0)),
          .down = gaussian(6, 3, rng.split(1)),
          .up_bias = gaussian(6, 1, rng.split(2)),
          .down_bias = gaussian(3, 1, rng.split(3)),
          .activation = Activation::max_min};
}

TEST(MaxMin, PutsTheLargerOfAPairFirst) {
  const Matrix x = (Matrix(2, 4) << 1, 2, 3, -4,  //
                    5, 0, 5, 7)
                       .finished();
  const Matrix swapped = swapped_pairs(x);
  EXPECT_EQ(swapped, (Matrix(2, 2) << 1, 0, 0, 1).finished());
  Matrix y = x;
  swap_pairs<double>(view(y), view(swapped));
  EXPECT_EQ(y, (Matrix(2, 4) << 3, 2, 1, -4, 5, 7, 5, 0).finished());
  swap_pairs<double>(view(y), view(swapped));
  EXPECT_EQ(y, x);
}

TEST(MaxMin, RefusesFeaturesWithoutPartnersAndOtherShapes) {
  EXPECT_THROW(swapped_pairs<double>(Matrix::Ones(2, 3)),
               std::invalid_argument);
  Matrix x = Matrix::Ones(2, 4);
  const Matrix wide = Matrix::Ones(2, 4), tall = Matrix::Ones(3, 2);
  EXPECT_THROW(swap_pairs<double>(view(x), view(wide)), std::invalid_argument);
  EXPECT_THROW(swap_pairs<double>(view(x), view(tall)), std::invalid_argument);
}

TEST(MaxMin, OfAnMlpIsItsFormulaEntryByEntry) {
  const MlpWeights w = random_mlp(1);
  const Matrix x = gaussian(5, 4, Rng(2));
  const Matrix y = Mlp<double>(w, 1)(x);
  const Matrix j = materialize(*Mlp<double>(w, 1).linearize(x));
  Matrix exact = Matrix::Zero(5, 3), exact_j = Matrix::Zero(15, 20);
  for (Index i = 0; i < 5; ++i)
    for (Index p = 0; p < 3; ++p) {
      const double a = x.row(i).dot(w.up.col(p)) + w.up_bias[p];
      const double b = x.row(i).dot(w.up.col(p + 3)) + w.up_bias[p + 3];
      const Index larger = a > b ? p : p + 3, other = a > b ? p + 3 : p;
      for (Index c = 0; c < 3; ++c) {
        exact(i, c) +=
            std::max(a, b) * w.down(p, c) + std::min(a, b) * w.down(p + 3, c);
        for (Index e = 0; e < 4; ++e)
          exact_j(i * 3 + c, i * 4 + e) += w.up(e, larger) * w.down(p, c) +
                                           w.up(e, other) * w.down(p + 3, c);
      }
    }
  exact.rowwise() += w.down_bias.transpose();
  EXPECT_LT((y - exact).norm(), 1e-14 * exact.norm());
  EXPECT_LT((j - exact_j).norm(), 1e-14 * exact_j.norm());
}

TEST(MaxMin, OfAnMlpHasTheDerivativeOfItsValuesAndItsAdjoint) {
  const MlpWeights w = random_mlp(3);
  const Mlp<double> f(w);
  const Matrix x = gaussian(5, 4, Rng(4));
  // no pair is so near a tie that a step of the check would cross it
  const Matrix h = (x * w.up).rowwise() + w.up_bias.transpose();
  ASSERT_GT((h.leftCols(3) - h.rightCols(3)).cwiseAbs().minCoeff(), 0.02);
  const DerivativeCheck check = check_derivative(f, x, Rng(5));
  EXPECT_LT(check.error, 1e-9);
  EXPECT_GT(check.magnitude, 1e-3);
  EXPECT_LT(adjoint_defect(*f.linearize(x), Rng(6)), 1e-14);
}

TEST(MaxMin, KeepsTheLengthOfEveryChange) {
  MlpWeights w{.up = Matrix::Identity(6, 6),
               .down = Matrix::Identity(6, 6),
               .activation = Activation::max_min};
  const Mlp<double> f(w);
  const Matrix j = materialize(*f.linearize(gaussian(2, 6, Rng(7))));
  EXPECT_TRUE((j.transpose() * j).isIdentity(1e-15));
}

TEST(MaxMin, OfAnMlpRefusesOddWidthsAndGates) {
  MlpWeights odd{.up = Matrix::Ones(2, 3),
                 .down = Matrix::Ones(3, 2),
                 .activation = Activation::max_min};
  EXPECT_THROW(Mlp<double>{odd}, std::invalid_argument);
  MlpWeights gated{.up = Matrix::Ones(2, 4),
                   .gate = Matrix::Ones(2, 4),
                   .down = Matrix::Ones(4, 2),
                   .activation = Activation::max_min};
  EXPECT_THROW(Mlp<double>{gated}, std::invalid_argument);
}

}  // namespace max_min_test
}  // namespace lipscope
