#include "lipscope/control/certify.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/attention/multi_head.h"
#include "lipscope/control/attack.h"
#include "lipscope/core/rng.h"
#include "lipscope/model/mlp.h"
#include "lipscope/operators/compose.h"

namespace lipscope {
namespace certify_test {

// three characters over two features: (1, 0), (0, 1), (−1, 0)
Readout three_characters() {
  return {(Matrix(2, 3) << 1, 0, -1, 0, 1, 0).finished()};
}

// z = (2, 1, −2): 1/√2 from the second, 4/2 from the third
const Vector hidden = Vector{{2.0, 1.0}};

Gain constant(double g) {
  return [g](double) { return std::optional<Magnitude>(g); };
}

// x ↦ x: a residual around an MLP whose weights are zero
MapPtr<double> identity(Index d) {
  MlpWeights zero;
  zero.up = Matrix::Zero(d, 1);
  zero.down = Matrix::Zero(1, d);
  return residual<double>(std::make_unique<Mlp<double>>(zero, 1));
}

// the prediction of the last token
std::optional<Attack> attacked(const Map<double>& map, const Readout& readout,
                               const Matrix& x) {
  return attack({map, readout, x.rows() - 1}, x);
}

TEST(CertifiedRadius, IsTheMarginOverGainAndDistance) {
  const CertifiedRadius c =
      certified_radius(hidden, three_characters(), constant(2.0));
  EXPECT_TRUE(c.proved);
  EXPECT_EQ(c.character, 0);
  EXPECT_EQ(c.runner_up, 1);
  EXPECT_DOUBLE_EQ(c.margin, 1.0);
  const double exact = std::sqrt(0.5) / 2.0;
  EXPECT_LT(c.radius, exact);
  EXPECT_GT(c.radius, exact * (1 - 1e-8));
  EXPECT_NEAR(c.log10, std::log10(exact), 1e-8);
  EXPECT_LE(c.log10, std::log10(c.radius));
  EXPECT_NEAR(c.gain_log10, std::log10(2.0), 1e-12);
}

TEST(CertifiedRadius, SolvesForAGainThatGrows) {
  // r(1 + r) = 1/√2
  const CertifiedRadius c = certified_radius(
      hidden, three_characters(),
      [](double r) { return std::optional(Magnitude(1.0) + r); });
  const double exact = (std::sqrt(1 + 4 * std::sqrt(0.5)) - 1) / 2;
  EXPECT_LT(c.radius, exact);
  EXPECT_GT(c.radius, exact * (1 - 1e-8));
}

TEST(CertifiedRadius, EndsWhereNothingIsProvedAnyMore) {
  const CertifiedRadius c = certified_radius(
      hidden, three_characters(), [](double r) -> std::optional<Magnitude> {
        if (r > 0.125) return std::nullopt;
        return Magnitude(1.0);
      });
  EXPECT_LE(c.radius, 0.125);
  EXPECT_GT(c.radius, 0.125 * (1 - 1e-8));
  const CertifiedRadius none =
      certified_radius(hidden, three_characters(),
                       [](double) { return std::optional<Magnitude>(); });
  EXPECT_FALSE(none.proved);
  EXPECT_EQ(none.radius, 0.0);
}

TEST(CertifiedRadius, GoesOnInLogarithmsBeyondDouble) {
  const CertifiedRadius c = certified_radius(
      hidden, three_characters(),
      [](double) { return std::optional(exp_of(1000 * std::log(10.0))); });
  EXPECT_EQ(c.radius, 0.0);
  EXPECT_NEAR(c.log10, std::log10(std::sqrt(0.5)) - 1000, 1e-6);
  EXPECT_LE(c.log10, std::log10(std::sqrt(0.5)) - 1000);
}

TEST(CertifiedRadius, CountsTheBiasOfTheHead) {
  // z = (2, 1 + 0.75, −2 + 3.5): 0.25/√2 from the second, 0.5/2 from the third
  Readout biased = three_characters();
  biased.bias = Vector{{0.0, 0.75, 3.5}};
  const CertifiedRadius c = certified_radius(hidden, biased, constant(2.0));
  EXPECT_EQ(c.runner_up, 1);
  EXPECT_DOUBLE_EQ(c.margin, 0.25);
  EXPECT_NEAR(c.radius, 0.25 / std::sqrt(2.0) / 2.0, 1e-8);
  // two equal columns: the bias decides for ever, the other one is nearest
  const Readout equal{(Matrix(2, 3) << 1, 1, 0, 0, 0, 0).finished(),
                      Vector{{1.0, 0.5, 0.0}}};
  const CertifiedRadius d = certified_radius(hidden, equal, constant(1.0));
  EXPECT_EQ(d.runner_up, 2);
  EXPECT_NEAR(d.radius, 3.0, 1e-7);
}

TEST(CertifiedRadius, OfATieIsZero) {
  const CertifiedRadius c =
      certified_radius(Vector{{1.0, 1.0}}, three_characters(), constant(2.0));
  EXPECT_EQ(c.radius, 0.0);
  EXPECT_TRUE(std::isinf(c.log10));
}

TEST(Attack, OfALinearMapIsExactlyTheRadius) {
  Matrix x = gaussian(3, 2, Rng(1));
  x.row(2) = hidden.transpose();
  const auto found = attacked(*identity(2), three_characters(), x);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->character, 1);
  EXPECT_GE(found->distance, std::sqrt(0.5));
  EXPECT_LT(found->distance, std::sqrt(0.5) * (1 + 1e-9));
  // nothing but the last token was moved, and there to where it is a tie
  EXPECT_LT((found->changed - x).topRows(2).norm(), 1e-12);
  EXPECT_NEAR(found->changed(2, 0), found->changed(2, 1), 1e-9);
  const CertifiedRadius c =
      certified_radius(hidden, three_characters(), constant(1.0));
  EXPECT_LE(c.radius, found->distance);
  EXPECT_GT(c.radius, found->distance * (1 - 1e-7));
}

TEST(Attack, FindsNothingWhereNothingChanges) {
  // every state is the same: the head reads zeros
  MlpWeights zero;
  zero.up = Matrix::Zero(2, 1);
  zero.down = Matrix::Zero(1, 2);
  zero.down_bias = Vector{{2.0, 1.0}};
  EXPECT_FALSE(attacked(Mlp<double>(zero, 1), three_characters(),
                        gaussian(2, 2, Rng(1))));
}

TEST(Attack, GivesUpWhereTheBorderIsFartherThanNumbersGo) {
  // states (2, 1) + 1e-160 x: the border is 1e160 away
  AttentionWeights w;
  w.query = w.key = w.output = Matrix::Identity(2, 2);
  w.value = 1e-160 * Matrix::Identity(2, 2);
  w.output_bias = Vector{{2.0, 1.0}};
  const MultiHeadAttention<double> map(
      w, AttentionOptions{.mask = Mask::causal, .threads = 1});
  EXPECT_FALSE(attacked(map, three_characters(), gaussian(2, 2, Rng(1))));
}

TEST(Attack, CountsTheBiasOfTheHeadAndReadsTheRowThatIsAsked) {
  Matrix x = gaussian(3, 2, Rng(1));
  x.row(1) = hidden.transpose();
  Readout biased = three_characters();
  biased.bias = Vector{{0.0, 0.75, 3.0}};
  const MapPtr<double> map = identity(2);
  const auto found = attack({*map, biased, 1}, x);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->character, 1);
  EXPECT_NEAR(found->distance, 0.25 / std::sqrt(2.0), 1e-9);
  EXPECT_NEAR((found->changed - x).row(1).norm(), found->distance, 1e-9);
}

// The state is (x₁, relu(x₂ − 1) + relu(−x₂ − 1)), and the border where x₁ + 9
// times the second is 2: no gradient at x says that it is nearer along x₂.
TEST(Attack, FindsByRestartsWhatNoGradientAtTheInputShows) {
  MlpWeights w;
  w.up = (Matrix(2, 4) << 1, -1, 0, 0, 0, 0, 1, -1).finished();
  w.up_bias = Vector{{0.0, 0.0, -1.0, -1.0}};
  w.down = (Matrix(4, 2) << 1, 0, -1, 0, 0, 1, 0, 1).finished();
  w.activation = Activation::relu;
  const Mlp<double> map(w, 1);
  const Readout readout{(Matrix(2, 2) << 0, 1, 0, 9).finished(),
                        Vector{{2.0, 0.0}}};
  const Matrix x = (Matrix(1, 2) << 0.5, 0).finished();
  // straight on it is 1.5; the nearest point of x₁ + 9(x₂ − 1) = 2 is 10.5/√82
  // away
  const auto found = attack({map, readout, 0}, x);
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->distance, 10.5 / std::sqrt(82.0), 1e-6);
  AttackOptions none;
  none.restarts = 0;
  EXPECT_NEAR(attack({map, readout, 0}, x, none)->distance, 1.5, 1e-6);
}

// residual L2 attention on two tokens of two features
MapPtr<double> small_attention(std::uint64_t seed) {
  AttentionWeights w;
  w.query = 1.5 * gaussian(2, 2, Rng(seed).split(0));
  w.value = gaussian(2, 2, Rng(seed).split(1));
  return residual<double>(std::make_unique<MultiHeadAttention<double>>(
      w,
      AttentionOptions{.kind = Kind::l2, .mask = Mask::causal, .threads = 1}));
}

TEST(Attack, IsTheSameForTheSameSeed) {
  const MapPtr<double> map = small_attention(3);
  const Readout head{gaussian(2, 3, Rng(3).split(2))};
  const Matrix x = gaussian(2, 2, Rng(3).split(3));
  const auto first = attack({*map, head, 1}, x, {.seed = 5});
  const auto again = attack({*map, head, 1}, x, {.seed = 5});
  ASSERT_TRUE(first && again);
  EXPECT_EQ(first->distance, again->distance);
  EXPECT_EQ(first->evaluations, again->evaluations);
}

// the nearest change along 3,000 directions of R⁴, each walked outwards in
// steps of a fiftieth of `far` and then bisected
double nearest_by_walking(const Map<double>& map, const Readout& head,
                          const Matrix& x, double far) {
  const auto at = [&](const Matrix& y) {
    return predicted(map(y).row(1).transpose(), head);
  };
  const Index before = at(x);
  double nearest = far;
  for (std::uint64_t k = 0; k < 3000; ++k) {
    const Matrix u = unflatten(random_direction(4, Rng(11).split(k)), 2, 2);
    for (double t = far / 50; t < nearest; t += far / 50) {
      if (at(x + t * u) == before) continue;
      double low = t - far / 50, high = t;
      for (int i = 0; i < 30; ++i) {
        const double middle = 0.5 * (low + high);
        (at(x + middle * u) == before ? low : high) = middle;
      }
      nearest = std::min(nearest, high);
      break;
    }
  }
  return nearest;
}

TEST(Attack, IsAsNearAsADenseSearch) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const MapPtr<double> map = small_attention(seed);
    const Readout head{gaussian(2, 3, Rng(seed).split(2))};
    const Matrix x = gaussian(2, 2, Rng(seed).split(3));
    const auto found = attacked(*map, head, x);
    ASSERT_TRUE(found) << seed;
    const double walked =
        nearest_by_walking(*map, head, x, 1.5 * found->distance);
    EXPECT_LE(found->distance, walked * (1 + 1e-3)) << seed;
    EXPECT_LT(walked, 1.2 * found->distance) << seed;
    EXPECT_NE(predicted((*map)(found->changed).row(1).transpose(), head),
              predicted((*map)(x).row(1).transpose(), head));
    EXPECT_GE(found->distance, (found->changed - x).norm());
  }
}

}  // namespace certify_test
}  // namespace lipscope
