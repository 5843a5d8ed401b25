// Bounds of whole layers: by hand, and never below a dense Jacobian.

#include "lipscope/theory/layer_bounds.h"

#include <gtest/gtest.h>

#include "lipscope/spectral/dense.h"
#include "lipscope/theory/layer_certificates.h"
#include "lipscope/theory/mlp_bound.h"
#include "tests/model/folders.h"

namespace lipscope {
namespace layer_bounds_test {

void expect_just_above(Magnitude bound, double exact) {
  EXPECT_GE(bound.value(), exact);
  EXPECT_LE(bound.value(), exact * (1 + 1e-9));
}

TEST(MlpBound, IsTheFormulaWorkedByHand) {
  const Matrix one = Matrix::Ones(1, 1);
  const MlpWeights plain{
      .up = 2 * one, .down = 3 * one, .activation = Activation::relu};
  expect_just_above(mlp_above(mlp_norms(plain), 7.0), 6.0);
  // |u| ≤ 2·2 + 1/2, |g| ≤ 3·2 + 1/4: (3·1.0999·4.5 + 2·6.25)·5
  const MlpWeights gated{.up = 2 * one,
                         .gate = 3 * one,
                         .down = 5 * one,
                         .up_bias = Vector::Constant(1, -0.5),
                         .gate_bias = Vector::Constant(1, 0.25),
                         .activation = Activation::silu};
  expect_just_above(mlp_above(mlp_norms(gated), 2.0), 136.74325);
}

TEST(LayerBound, IsTheFormulaWorkedByHand) {
  const BlockParts parts{2.0, 3.0, 5.0, 7.0};
  EXPECT_EQ(layer_bound(parts, MapName::core, true).value(), 2.0);
  EXPECT_EQ(layer_bound(parts, MapName::attn, false).value(), 2.0);
  expect_just_above(layer_bound(parts, MapName::residual, true), 7.0);
  expect_just_above(layer_bound(parts, MapName::residual, false), 9.0);
  expect_just_above(layer_bound(parts, MapName::block, true), 7.0 * 36.0);
  expect_just_above(layer_bound(parts, MapName::block, false), 9.0 * 42.0);
  EXPECT_THROW(layer_bound(parts, MapName::model, true), std::invalid_argument);
}

TEST(NormLayerAt, TakesTheTokenOfLeastVariance) {
  Matrix x(2, 2);
  x << 13, 7, 4, 2;  // variances 9 and 1, mean squares 109 and 10
  NormWeights norm{.gain = Vector::Constant(2, -2.0), .epsilon = 3.0};
  expect_just_above(norm_layer_at(norm, x), 1.0);  // 2/√(1 + 3)
  norm.kind = NormWeights::Kind::rms;
  norm.epsilon = 6.0;
  expect_just_above(norm_layer_at(norm, x), 0.5);  // 2/√(10 + 6)
}

class LayersOf : public testing::TestWithParam<Architecture> {
 protected:
  LayersOf() {
    const ModelConfig config = test::small_config(GetParam());
    test::write_model(folder.path(), config, test::random_tensors(config, 5));
    model.emplace(load_model(folder.path()));
  }

  const test::TemporaryFolder folder;
  std::optional<Model> model;
};

constexpr MapName maps_of_a_layer[] = {MapName::core, MapName::attn,
                                       MapName::residual, MapName::block};

// how far certificates may be above the dense Jacobian of these small layers;
// of a block the gated MLP is the loosest part
double at_most_times(MapName map) {
  return map == MapName::block ? 1000 : map == MapName::residual ? 10 : 5;
}

TEST_P(LayersOf, CertificatesAreNeverBelowTheDenseJacobian) {
  for (const MapName map : maps_of_a_layer)
    for (const Kind kind : all_kinds) {
      if (kind == Kind::l2 && GetParam() == Architecture::llama) continue;
      const LayerWeights layer = load_layer(*model, 1, map);
      const ModelMapOptions options{.kind = kind};
      const LayerCertificates certificates(layer, map, options);
      const auto f = layer_map<double>(layer, map, options);
      for (const double size : {0.1, 1.0, 8.0}) {
        const Matrix x = size * gaussian(4, 8, Rng(3));
        const double exact = dense_norm(materialize(*f->linearize(x))).value;
        const auto usual = certificates.usual(x.rows());
        ASSERT_TRUE(usual);
        const auto at_input = certificates.at(x, usual);
        ASSERT_TRUE(at_input) << name_of(kind);
        EXPECT_LE(exact, at_input->value)
            << at_input->name << " map " << name_of(map) << " size " << size;
        EXPECT_LE(at_input->value, at_most_times(map) * exact)
            << at_input->name << " kind " << name_of(kind) << " size " << size;
        const auto over_ball = certificates.at(x, std::nullopt);
        const bool none =
            kind == Kind::l2_untied ||
            (GetParam() == Architecture::llama && kind != Kind::dot);
        ASSERT_EQ(over_ball.has_value(), !none) << name_of(kind);
        if (over_ball) {
          EXPECT_LE(exact, over_ball->value)
              << over_ball->name << " map " << name_of(map) << " size " << size;
        }
      }
    }
}

// without norms a block is at most (1 + L_attn)(1 + L_mlp), everywhere and at
// an input
TEST(LayerWithoutNorms, IsBoundedByItsBranches) {
  const Model model = random_model(model_config({.characters = 5,
                                                 .layers = 1,
                                                 .width = 8,
                                                 .heads = 2,
                                                 .context = 4,
                                                 .hidden = 12,
                                                 .norm = NormPlace::none}),
                                   2);
  LayerWeights layer = load_layer(model, 0);
  layer.mlp.up *= 20;
  layer.mlp.down *= 20;
  const Matrix x = gaussian(4, 8, Rng(3));
  const double mlp = mlp_above(mlp_norms(layer.mlp), 0.0).value();
  EXPECT_GT(mlp, 0.5);
  const auto certificate = Certificate::split_paths;
  const double attention =
      LayerCertificates(layer, MapName::attn, {}).at(x, certificate)->value;
  const double residual =
      LayerCertificates(layer, MapName::residual, {}).at(x, certificate)->value;
  const double block =
      LayerCertificates(layer, MapName::block, {}).at(x, certificate)->value;
  EXPECT_NEAR(residual, 1 + attention, 1e-8);
  EXPECT_NEAR(block, (1 + attention) * (1 + mlp), 1e-8);
  const auto f = layer_map<double>(layer, MapName::block, {});
  EXPECT_LE(dense_norm(materialize(*f->linearize(x))).value, block);

  const BlockParts parts = parts_everywhere(layer, MapName::block, 3.0);
  EXPECT_NEAR(layer_bound(parts, MapName::block, false).value(), 4 * (1 + mlp),
              1e-9);
}

TEST_P(LayersOf, OneHeadIsBoundedAsInItsLayer) {
  const LayerWeights layer = load_layer(*model, 1, MapName::attn);
  const ModelMapOptions options{.heads = {1}};
  const LayerCertificates certificates(layer, MapName::attn, options);
  const Matrix x = gaussian(4, 8, Rng(3));
  const double R = std::nextafter(x.rowwise().norm().maxCoeff(), INFINITY);
  const auto ball = best_bound(
      attention_bounds(layer, true, options, x.rows(), {R, {}}), Norm::two);
  EXPECT_NEAR(certificates.at(x, {})->value, ball->value, 1e-9 * ball->value);
  EXPECT_FALSE(certificates.usual(Index{1} << 20));  // too many to keep
  if (GetParam() == Architecture::llama) return;
  EXPECT_EQ(certificates.usual(64), Certificate::token_pairs);
  EXPECT_EQ(certificates.usual(65), Certificate::split_paths);
  const Bound local =
      local_certificate(layer.attention, {.mask = layer.mask, .heads = {1}}, x,
                        Certificate::token_pairs);
  EXPECT_EQ(certificates.at(x, Certificate::token_pairs)->value, local.value);
}

TEST_P(LayersOf, BoundsEverywhereAreNeverBelowTheDenseJacobian) {
  // attention over what the norm ahead of it lets through, the rest everywhere
  const LayerWeights layer = load_layer(*model, 1);
  const LayerWeights before = load_layer(*model, 0);
  const NormWeights& norm =
      layer.pre_norm() ? layer.attention_norm : before.mlp_norm;
  const auto attention = best_bound(
      attention_bounds(layer, true, {}, 4, {norm_layer_radius(norm), norm}),
      Norm::two);
  ASSERT_TRUE(attention);
  for (const MapName map : {MapName::residual, MapName::block}) {
    const Magnitude bound = layer_bound(
        parts_everywhere(layer, map, attention->value), map, layer.pre_norm());
    const auto f = layer_map<double>(layer, map, {});
    for (const double size : {1e-3, 0.03, 1.0, 30.0}) {
      Matrix x = size * gaussian(4, 8, Rng(4));
      if (!layer.pre_norm()) x = LayerNorm<double>(norm)(x);
      EXPECT_LE(dense_norm(materialize(*f->linearize(x))).value, bound.value())
          << name_of(map) << " size " << size;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, LayersOf,
                         testing::Values(Architecture::gpt2, Architecture::bert,
                                         Architecture::llama));

}  // namespace layer_bounds_test
}  // namespace lipscope
