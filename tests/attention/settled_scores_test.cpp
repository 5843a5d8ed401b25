#include "lipscope/attention/settled_scores.h"

#include <gtest/gtest.h>

#include "lipscope/attention/multi_head.h"
#include "lipscope/spectral/dense.h"

namespace lipscope {
namespace settled_scores_test {

// weights 1 and one feature: P_ij of the scores x_i x_j, or of −(x_i − x_j)²
MultiHeadAttention<double> one_feature(Kind kind) {
  AttentionWeights w;
  w.query = w.key = w.value = Matrix::Ones(1, 1);
  if (kind == Kind::l2) w.key.resize(0, 0);
  return MultiHeadAttention<double>(w, {.kind = kind, .threads = 1});
}

Matrix tokens(std::initializer_list<double> x) {
  Matrix all(static_cast<Index>(x.size()), 1);
  Index i = 0;
  for (const double value : x) all(i++, 0) = value;
  return all;
}

double constant(Kind kind, std::initializer_list<double> x) {
  const MultiHeadAttention<double> f = one_feature(kind);
  return dense_norm(materialize(*f.linearize(tokens(x)))).value;
}

TEST(SettledScores, DistancesThatAreAllNoiseAreRefused) {
  // 6·10⁸ and 1 more have distance 1; of squares of 3·10⁸ rounding leaves 16
  EXPECT_THROW(constant(Kind::l2, {6e8, 6e8 + 1, 0}), TokensTooLarge);
  EXPECT_THROW(constant(Kind::l2, {1e6, 1e6 + 1, -1e6}), TokensTooLarge);
  // near each other and near their mean nothing is lost, wherever they are
  EXPECT_NEAR(constant(Kind::l2, {1e6, 1e6 + 1}), constant(Kind::l2, {0, 1}),
              1e-9);
  EXPECT_NO_THROW(constant(Kind::l2, {100, 101, -100}));
}

TEST(SettledScores, AWeightThatCountsAloneIsKnown) {
  // each token sees itself alone: J is the identity
  EXPECT_EQ(constant(Kind::l2, {1e9, 0, -1e9}), 1.0);
  EXPECT_EQ(constant(Kind::dot, {1e6, 1}), constant(Kind::dot, {1e7, 1}));
}

TEST(SettledScores, ScoresThatCountAndAreLostAreRefused) {
  // x_i x_j = 10¹², and 1 more: u times this is 10⁻³
  EXPECT_THROW(constant(Kind::dot, {1e6, 1e6 + 1e-6}), TokensTooLarge);
  EXPECT_NO_THROW(constant(Kind::dot, {1e4, 1e4 + 1e-4}));
  // σ near its bend at log 2: −10¹² and 10¹² are far from it, 0 is known
  EXPECT_NO_THROW(constant(Kind::sigmoid, {1e6, -1e6}));
}

TEST(SettledScores, TheMessageHasTheNumbers) {
  try {
    constant(Kind::l2, {6e8, 6e8 + 1, 0});
    FAIL();
  } catch (const TokensTooLarge& e) {
    EXPECT_NE(std::string(e.what()).find("token 0 sees 2 tokens"),
              std::string::npos)
        << e.what();
  }
}

}  // namespace settled_scores_test
}  // namespace lipscope
