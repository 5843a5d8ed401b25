#include "lipscope/train/quiet_start.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/train/language_model.h"
#include "tests/train/small_models.h"

namespace lipscope::test {
namespace quiet_start_test {

LanguageModelConfig quiet(NormPlace norm) {
  LanguageModelConfig config = little_by_coordinate(norm);
  config.width = 16;  // 4 of them loud
  config.heads = 8;   // two features each
  config.quiet_gain = 8.0;
  return config;
}

Matrix read(const LanguageModel<double>& model, const Vector& weights,
            const std::string& name) {
  return tensor(weights, model.layout().slot(name));
}

// p of the masses that one head begins with, at five tokens: distances 1 to 4
double phi_inverse(double looks_at) {
  double mass = 0.0;
  for (int t = 1; t < 5; ++t) mass += std::exp(-std::abs(t - looks_at));
  double p = 0.5;
  for (int i = 0; i < 100; ++i)
    p -= (p * std::exp(p + 1) - mass) / ((p + 1) * std::exp(p + 1));
  return p;
}

TEST(QuietStart, WritesAShareOfATokenIntoCoordinatesWhereNoneIs) {
  LanguageModel<double> model(quiet(NormPlace::post));
  const Vector weights = model.layout().initial<double>(1);
  model.forward(weights, {{2, 2, 2, 2, 2}}, {.length = 5});
  const Matrix x = model.mixing()[0]->input();
  EXPECT_GT(x.leftCols(4).cwiseAbs().minCoeff(), 0.0);
  EXPECT_EQ(x.rightCols(12).norm(), 0.0);

  Layout layout;
  AttentionLayer<double> layer(layout, "a",
                               model.mixing()[0]->attention()->shape());
  const Vector own = layout.initial<double>(1);
  const Matrix y = layer.forward(own, x, {.length = 5});
  EXPECT_EQ(y.leftCols(4).norm(), 0.0);
  // all tokens are alike, so that P x = x
  for (Index j = 0; j < 12; ++j) {
    const double share =
        1 / (4 * phi_inverse(1.0 + double(j / 4)) * std::sqrt(2.0) + 1);
    EXPECT_NEAR(y(4, 4 + j), share * x(4, j % 4), 1e-12 * std::abs(x(4, j % 4)))
        << j;
  }
}

TEST(QuietStart, LooksAtOneDistanceAfterTheOther) {
  LanguageModel<double> model(quiet(NormPlace::post));
  const Matrix b =
      read(model, model.layout().initial<double>(1), "h.0.attn.distance_bias");
  for (Index h = 0; h < 8; ++h) {
    EXPECT_EQ(b(h, 0), 0.0);
    for (Index t = 1; t < 5; ++t)
      EXPECT_EQ(b(h, t), -std::abs(double(t) - 1.0 - double(h / 2)));
  }
}

TEST(QuietStart, MakesQuietCoordinatesLouderByItsGain) {
  LanguageModel<double> post(quiet(NormPlace::post));
  Vector weights = post.layout().initial<double>(1);
  const Matrix behind = read(post, weights, "h.1.ln_1.weight");
  EXPECT_EQ(behind(0, 3), 1.0);
  EXPECT_EQ(behind(0, 4), 8.0);
  EXPECT_EQ(read(post, weights, "h.1.ln_2.weight")(0, 4), 0.125);
  const double loud = read(post, weights, "wte.weight").norm();
  const double down = read(post, weights, "h.0.mlp.down.weight").norm();

  LanguageModel<double> pre(quiet(NormPlace::pre));
  weights = pre.layout().initial<double>(1);
  EXPECT_EQ(read(pre, weights, "h.1.ln_1.weight"), Matrix::Ones(1, 16));
  EXPECT_NEAR(read(pre, weights, "wte.weight").norm(), loud / 8, 1e-12);
  EXPECT_NEAR(read(pre, weights, "h.0.mlp.down.weight").norm(), down / 8,
              1e-12);
}

TEST(QuietStart, IsRefusedWhereItMeansNothing) {
  const auto refused = [](auto change) {
    LanguageModelConfig config = quiet(NormPlace::post);
    EXPECT_NO_THROW(require_sound(config));
    change(config);
    EXPECT_THROW(require_sound(config), std::invalid_argument);
  };
  refused([](LanguageModelConfig& c) { c.norm = NormPlace::none; });
  refused([](LanguageModelConfig& c) { c.quiet_gain = 0.0; });
  refused([](LanguageModelConfig& c) { c.positions = Positions::table; });
  refused([](LanguageModelConfig& c) {
    c.mixer = Mixer::l2;
    c.division = Division::layer;
  });
  refused([](LanguageModelConfig& c) { c.division = Division::layer; });
}

}  // namespace quiet_start_test
}  // namespace lipscope::test
