#include "lipscope/attention/tiled_head.h"

#include <gtest/gtest.h>

#include "lipscope/attention/l2.h"
#include "lipscope/core/rng.h"
#include "tests/support/tolerance.h"

namespace lipscope {
namespace tiled_head_test {

template <class Real>
HeadFeatures<Real> random_features(Index n, Index k, Index w, int seed) {
  const Rng rng(seed);
  return {.q = gaussian(n, k, rng.split(0)).template cast<Real>(),
          .k = gaussian(n, k, rng.split(1)).template cast<Real>(),
          .v = gaussian(n, w, rng.split(2)).template cast<Real>()};
}

// windows within a tile and over several, padding of more than a tile
std::vector<Mask> masks_for(Index n) {
  std::vector<Mask> masks{Mask::none, Mask::causal};
  if (n < 17) return masks;
  for (const bool later : {false, true})
    for (const Index window : {Index{1}, Index{5}, Index{150}, n + 1})
      masks.push_back({.hides_later = later, .window = window});
  masks.push_back({.padding_before = n / 2, .padding_after = n / 3});
  masks.push_back({.hides_later = true, .padding_after = n / 2});
  masks.push_back({.window = 5, .padding_before = 3, .padding_after = 4});
  masks.push_back({.hides_later = true, .window = 5, .padding_after = 4});
  return masks;
}

template <class Real>
class TiledHeadOf : public testing::Test {
 protected:
  // agreement up to the rounding of numbers of size one, of which a nearly
  // one-hot P lets little else through
  static void expect_close(const MatrixOf<Real>& a, const MatrixOf<Real>& b,
                           const char* what, Index n) {
    ASSERT_EQ(a.rows(), b.rows());
    ASSERT_EQ(a.cols(), b.cols());
    EXPECT_LT((a - b).norm(), test::rounding<Real>(100) * (1 + b.norm()))
        << what << ", n = " << n;
  }
};

using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(TiledHeadOf, Reals);

TYPED_TEST(TiledHeadOf, AgreesWithTheReferenceInBothMemoryModes) {
  using Real = TypeParam;
  using Tiled = TiledHead<Real>;
  // one token; less than a tile; whole tiles; tiles and a rest
  for (const Index n : {1, 2, 17, 128, 129, 300, 640})
    for (const Mask& mask : masks_for(n))
      for (const std::string kind : {"dot", "l2", "sigmoid", "weighed"}) {
        HeadFeatures<Real> at = random_features<Real>(n, 7, 5, 1);
        Weighting weighting{.mask = mask};
        if (kind == "l2") at = l2_features(at);
        if (kind == "sigmoid") weighting.sigmoid_shift = -1.5;
        if (kind == "weighed") {
          weighting.log_mass = gaussian(n, 1, Rng(4));
          if (mask == Mask::causal)  // every third sees everything
            for (Index i = 0; i < n; ++i)
              weighting.seen.push_back(i % 3 == 2 ? n : i + 1);
        }
        const auto d = random_features<Real>(n, at.q.cols(), 5, 2);
        const MatrixOf<Real> gy = gaussian(n, 5, Rng(3)).template cast<Real>();
        const HeadState<Real> reference = head_state(at, weighting);
        for (const auto keep : {Tiled::Keep::weights, Tiled::Keep::nothing}) {
          const Tiled tiled(at, weighting, keep);
          this->expect_close(tiled.value(), head_forward(reference), "y", n);
          // what stood there before must not show
          MatrixOf<Real> dy = MatrixOf<Real>::Constant(n, 5, 7);
          tiled.tangent(view(d), view(dy));
          this->expect_close(dy, head_tangent(reference, d), "dy", n);
          HeadFeatures<Real> g = d;
          tiled.cotangent(view(gy), view(g));
          const auto expected = head_cotangent(reference, gy);
          this->expect_close(g.v, expected.v, "gv", n);
          if (n == 1) continue;  // nothing but rounding passes through scores
          this->expect_close(g.q, expected.q, "gq", n);
          this->expect_close(g.k, expected.k, "gk", n);
        }
      }
}

TYPED_TEST(TiledHeadOf, AveragesTheCovariancesOfItsRows) {
  using Real = TypeParam;
  for (const Mask& mask : masks_for(300)) {
    const HeadFeatures<Real> at = random_features<Real>(300, 7, 5, 1);
    const HeadState<Real> reference = head_state(at, {.mask = mask});
    // row by row, as it is defined
    MatrixOf<Real> expected = MatrixOf<Real>::Zero(7, 5);
    for (Index i = 0; i < 300; ++i) {
      const auto p = reference.p.row(i);
      const MatrixOf<Real> k = at.k.rowwise() - p * at.k;
      const MatrixOf<Real> v = at.v.rowwise() - p * at.v;
      expected += k.transpose() * p.transpose().asDiagonal() * v / Real(300);
    }
    for (const auto keep :
         {TiledHead<Real>::Keep::weights, TiledHead<Real>::Keep::nothing})
      this->expect_close(
          TiledHead<Real>(at, {.mask = mask}, keep).mean_covariance(), expected,
          "C", 300);
  }
}

TEST(TiledHead, KeepsHalfUnderACausalMask) {
  const Index none = TiledHead<float>::weights_kept(2048, {});
  const Index causal =
      TiledHead<float>::weights_kept(2048, {.mask = Mask::causal});
  EXPECT_EQ(none, 2048 * 2048);
  EXPECT_LT(causal, 0.54 * none);  // a tile has 128 rows
}

// every product takes the time of the weights that there are
TEST(TiledHead, KeepsAsManyRowsAsTheWindowHas) {
  const auto kept = [](Index n, const Mask& mask) {
    return TiledHead<float>::weights_kept(n, {.mask = mask});
  };
  const Mask window{.window = 64}, causal{.hides_later = true, .window = 64};
  for (const Index n : {2048, 4096, 8192}) {
    // a tile of 64 rows sees 2·63 tokens more than it has rows, or 63
    EXPECT_LE(kept(n, window), n * (64 + 126));
    EXPECT_LE(kept(n, causal), n * (64 + 63));
    EXPECT_GE(kept(n, causal), n * 64 - 64 * 64);
  }
  EXPECT_LT(kept(8192, window), 0.04 * kept(8192, Mask::none));
  // padding is never looked at
  EXPECT_EQ(kept(2048, {.padding_before = 1000, .padding_after = 24}),
            2048 * 1024);
}

}  // namespace tiled_head_test
}  // namespace lipscope
