#include "lipscope/core/gemm.h"

#include <gtest/gtest.h>
#include <sys/time.h>

#include <chrono>
#include <csignal>

#include "lipscope/core/rng.h"
#include "tests/support/tolerance.h"

namespace lipscope {
namespace gemm_test {

template <class Real>
class Gemm : public testing::Test {
 protected:
  // op(A) B-th factor of the wanted shape, stored transposed or not
  static MatrixOf<Real> factor(Index rows, Index cols, bool flip, int seed) {
    return gaussian(flip ? cols : rows, flip ? rows : cols, Rng(seed))
        .template cast<Real>();
  }
  static Matrix plain(const MatrixOf<Real>& m, bool flip) {
    const Matrix wide = m.template cast<double>();
    return flip ? Matrix(wide.transpose()) : wide;
  }
};

using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(Gemm, Reals);

TYPED_TEST(Gemm, EqualsTheProductForEveryTransposition) {
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      const auto a = this->factor(7, 300, ta, 1);
      const auto b = this->factor(300, 5, tb, 2);
      MatrixOf<TypeParam> c = MatrixOf<TypeParam>::Constant(7, 5, 9);

      gemm<TypeParam>({view(a), ta}, {view(b), tb}, view(c));

      const Matrix expected = this->plain(a, ta) * this->plain(b, tb);
      EXPECT_LT((c.template cast<double>() - expected).cwiseAbs().maxCoeff(),
                30 * test::rounding<TypeParam>(300))
          << ta << tb;
    }
}

TYPED_TEST(Gemm, AddsToWhatIsThere) {
  const auto a = this->factor(3, 4, false, 1);
  const auto b = this->factor(4, 5, false, 2);
  MatrixOf<TypeParam> once(3, 5), twice(3, 5);
  gemm(as_is(a), as_is(b), view(once));
  gemm(as_is(a), as_is(b), view(twice));
  gemm(as_is(a), as_is(b), view(twice), Into::add);
  EXPECT_LT((twice - 2 * once).norm(), test::rounding<TypeParam>(20));
}

TYPED_TEST(Gemm, WorksOnBlocksAndLeavesTheRestAlone) {
  const auto a = this->factor(9, 9, false, 1);
  const auto b = this->factor(9, 9, false, 2);
  MatrixOf<TypeParam> c = MatrixOf<TypeParam>::Constant(9, 9, 5);
  gemm<TypeParam>(as_is(view(a, {1, 2, 3, 4})), as_is(view(b, {2, 1, 4, 2})),
                  view(c, {5, 6, 3, 2}));
  const MatrixOf<TypeParam> expected =
      a.block(1, 2, 3, 4) * b.block(2, 1, 4, 2);
  EXPECT_LT((c.block(5, 6, 3, 2) - expected).norm(),
            test::rounding<TypeParam>(100));
  c.block(5, 6, 3, 2).setConstant(5);
  EXPECT_EQ(c, (MatrixOf<TypeParam>::Constant(9, 9, 5)));
}

TYPED_TEST(Gemm, ProductHasTheSameBitsForAnyNumberOfThreads) {
  // odd sizes, larger than a tile both ways
  const auto a = this->factor(601, 77, false, 1);
  const auto b = this->factor(77, 809, true, 2);
  const auto one = product<TypeParam>(as_is(a), {view(b), true}, 1);
  const auto two = product<TypeParam>(as_is(a), {view(b), true}, 2);
  const auto three = product<TypeParam>(as_is(a), {view(b), true}, 3);
  EXPECT_EQ(one, two);
  EXPECT_EQ(one, three);
  const Matrix expected = this->plain(a, false) * this->plain(b, true);
  EXPECT_LT((one.template cast<double>() - expected).cwiseAbs().maxCoeff(),
            30 * test::rounding<TypeParam>(77));
}

TYPED_TEST(Gemm, EmptyInnerDimensionGivesZero) {
  const MatrixOf<TypeParam> a(2, 0), b(0, 3);
  MatrixOf<TypeParam> c = MatrixOf<TypeParam>::Ones(2, 3);
  gemm(as_is(a), as_is(b), view(c));
  EXPECT_EQ(c, (MatrixOf<TypeParam>::Zero(2, 3)));
}

TYPED_TEST(Gemm, RefusesShapesThatDoNotFit) {
  const MatrixOf<TypeParam> a(2, 3), b(4, 5);
  MatrixOf<TypeParam> c(2, 5);
  EXPECT_THROW(gemm(as_is(a), as_is(b), view(c)), std::invalid_argument);
}

// Without the care of gemm.cpp the heap is damaged within milliseconds.
TEST(Products, AreUndisturbedBySignals) {
  static volatile std::sig_atomic_t signals = 0;
  struct sigaction count = {}, before = {};
  count.sa_handler = [](int) { signals = signals + 1; };
  sigaction(SIGALRM, &count, &before);
  const MatrixOf<float> a = gaussian(416, 416, Rng(1)).cast<float>(),
                        b = gaussian(416, 8, Rng(2)).cast<float>();
  const auto made = [&] {
    MatrixOf<float> c(416, 8);
    gemm(as_is(a), as_is(b), view(c));
    return c;
  };
  const MatrixOf<float> right = made();
  const itimerval often = {{0, 100}, {0, 100}}, never = {};
  setitimer(ITIMER_REAL, &often, nullptr);
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  bool same = true;
  while (std::chrono::steady_clock::now() < end) same = same && made() == right;
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &before, nullptr);
  EXPECT_TRUE(same);
  EXPECT_GT(signals, 100);
}

}  // namespace gemm_test
}  // namespace lipscope
