// Bounds of whole models: by hand, and never below a dense Jacobian.

#include "lipscope/theory/model_bounds.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/spectral/dense.h"
#include "lipscope/theory/model_certificates.h"
#include "lipscope/theory/norm_layer_bound.h"
#include "tests/model/folders.h"

namespace lipscope {
namespace model_bounds_test {

Bound attention_of_size(const std::string& name, double value) {
  return make_bound(
      {.name = name, .norm = Norm::two, .mask = "any", .citation = name}, value,
      InputSet::everywhere());
}

LayerBound block_of(const std::string& name, double attention, double value) {
  return named_layer_bound(MapName::block, attention_of_size(name, attention),
                           {attention, 1.0, 1.0, 1.0}, value,
                           InputSet::ball(value));
}

TEST(ModelBound, IsTheProductAndCitesTheLargestAttention) {
  const std::vector<LayerBound> blocks = {
      block_of("a", 2.0, 30.0), block_of("b", 5.0, 7.0),
      block_of("c", 5.0, 11.0), block_of("d", 3.0, 2.0)};
  const ModelBound plain = model_bound(blocks, {});
  EXPECT_NEAR(plain.bound.value, 4620.0, 1e-9);
  EXPECT_GE(plain.bound.value, 4620.0);
  EXPECT_EQ(plain.bound.name, "model(block(b))");
  EXPECT_EQ(plain.bound.scope, InputSet::ball(7.0));
  EXPECT_NE(plain.bound.citation.find("theory/composition.h; b"),
            std::string::npos);
  ASSERT_EQ(plain.layers.size(), 4u);
  EXPECT_EQ(plain.layers[2].value(), 11.0);

  EXPECT_NEAR(model_bound(blocks, Magnitude(0.5)).bound.value, 2310.0, 1e-9);
  EXPECT_NEAR(model_bound(blocks, Magnitude(0.5), 0.01).bound.value, 2333.1,
              1e-9);
  EXPECT_THROW(model_bound({}, {}), std::invalid_argument);
}

TEST(ModelBound, GoesOnBeyondDouble) {
  const std::vector<LayerBound> blocks(5, block_of("a", 2.0, 1e100));
  const ModelBound found = model_bound(blocks, {});
  EXPECT_TRUE(std::isinf(found.bound.value));
  EXPECT_NEAR(found.bound.log10, 500.0, 1e-9);
}

class ModelsOf : public testing::TestWithParam<Architecture> {
 protected:
  ModelsOf() {
    const ModelConfig config = test::small_config(GetParam());
    test::write_model(folder.path(), config, test::random_tensors(config, 5));
    model.emplace(load_model(folder.path()));
  }

  LayerSource layers() {
    return [this](Index l) -> const LayerWeights& {
      return kept = load_layer(*model, l);
    };
  }

  const test::TemporaryFolder folder;
  std::optional<Model> model;
  LayerWeights kept;
};

TEST_P(ModelsOf, BoundEverywhereIsTheProductOfItsBlocks) {
  const Index n = 4;
  const std::optional<ModelBound> found =
      model_bound_everywhere(*model, layers(), {}, n);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->bound.norm, Norm::two);
  Magnitude product = 1.0;
  for (Index l = 0; l < model->config.layers; ++l) {
    const NormWeights norm = *load_input_norm(*model, l);
    const LayerWeights layer = load_layer(*model, l);
    const std::optional<LayerBound> block = layer_bound_everywhere(
        layer, MapName::block, {}, n, {norm_layer_radius(norm), norm});
    ASSERT_TRUE(block);
    // its parts, put together by hand
    const auto& p = block->parts;
    const double a = p.attention.value(), an = p.attention_norm.value();
    const double m = p.mlp.value(), mn = p.mlp_norm.value();
    EXPECT_NEAR(
        block->bound.value / (layer.pre_norm() ? (1 + a * an) * (1 + m * mn)
                                               : an * (1 + a) * mn * (1 + m)),
        1.0, 1e-12);
    EXPECT_EQ(block->bound.name, "block(" + block->attention.name + ")");
    EXPECT_EQ(block->bound.scope, layer.pre_norm() ? InputSet::everywhere()
                                                   : block->attention.scope);
    product = product * block->value;
    EXPECT_EQ(found->layers[l].log10(), block->value.log10());
  }
  if (const auto norm = load_final_norm(*model))
    product = product * norm_layer_everywhere(*norm);
  EXPECT_EQ(found->bound.value, product.value());
}

TEST_P(ModelsOf, BoundsAreNeverBelowTheDenseJacobian) {
  const Index n = 4;
  const auto everywhere = model_bound_everywhere(*model, layers(), {}, n);
  ASSERT_TRUE(everywhere);
  const auto f = model_map<double>(*model, {});
  for (const double size : {0.03, 1.0, 10.0}) {
    Matrix x(2 * n, 8);
    x << size * gaussian(n, 8, Rng(3)), size * gaussian(n, 8, Rng(4));
    // a post-norm model reads what the norm of the embeddings lets through
    if (!model->config.pre_norm())
      x = LayerNorm<double>(*load_input_norm(*model, 0))(x);
    const auto found = model_certificates(*model, {}, {}, x, 2);
    ASSERT_EQ(found.size(), 2u);
    for (Index i = 0; i < 2; ++i) {
      const Matrix one = x.middleRows(i * n, n);
      const double exact = dense_norm(materialize(*f->linearize(one))).value;
      ASSERT_TRUE(found[i]);
      EXPECT_LE(exact, found[i]->bound.value) << size;
      EXPECT_LE(exact, everywhere->bound.value) << size;
      EXPECT_EQ(found[i]->bound.scope, InputSet::one());
      EXPECT_EQ(found[i]->bound.name.rfind("model(block(", 0), 0u);
      // what stands beside a sequence does not matter
      const auto alone = model_certificates(*model, {}, {}, one, 1);
      EXPECT_EQ(alone[0]->bound.value, found[i]->bound.value);
    }
  }
}

TEST_P(ModelsOf, OfAKindWithoutABoundHaveOneAtAnInput) {
  const Index n = 4;
  const ModelMapOptions untied{.kind = Kind::l2_untied};
  EXPECT_FALSE(model_bound_everywhere(*model, layers(), untied, n));
  const Matrix x = gaussian(n, 8, Rng(3));
  const auto found = model_certificates(*model, untied, {}, x, 1);
  ASSERT_EQ(found.size(), 1u);
  ASSERT_TRUE(found[0]);
  const auto f = model_map<double>(*model, untied);
  EXPECT_LE(dense_norm(materialize(*f->linearize(x))).value,
            found[0]->bound.value);
  EXPECT_EQ(found[0]->bound.name, "model(block(split_paths))");
}

TEST_P(ModelsOf, SayNothingWhereNothingIsProved) {
  // the weights of two heads between so many tokens are not kept: what is left
  // is the bound over the ball, and this kind has none
  const ModelMapOptions untied{.kind = Kind::l2_untied};
  const Index n = 8193;
  const auto found =
      model_certificates(*model, untied, {}, gaussian(2 * n, 8, Rng(3)), 2);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_FALSE(found[0] || found[1]);
  EXPECT_THROW(model_certificates(*model, {}, {}, gaussian(7, 8, Rng(3)), 2),
               std::invalid_argument);
}

INSTANTIATE_TEST_SUITE_P(Architectures, ModelsOf,
                         testing::Values(Architecture::gpt2, Architecture::bert,
                                         Architecture::llama));

TEST(ModelWithoutNorms, HasABoundWhereItsKindIsLipschitzEverywhere) {
  const Model model = random_model(model_config({.characters = 5,
                                                 .layers = 2,
                                                 .width = 8,
                                                 .heads = 2,
                                                 .context = 4,
                                                 .hidden = 12,
                                                 .norm = NormPlace::none}),
                                   2);
  LayerWeights kept;
  const LayerSource layers = [&](Index l) -> const LayerWeights& {
    return kept = load_layer(model, l);
  };
  EXPECT_TRUE(model_bound_everywhere(model, layers, {.kind = Kind::l2}, 4));
  // dot-product: layer 0 reads what enters, and nothing bounds what layer 1
  // reads
  EXPECT_FALSE(model_bound_everywhere(model, layers, {.kind = Kind::dot}, 4));
  EXPECT_FALSE(model_bound_everywhere(model, layers, {.kind = Kind::dot}, 4,
                                      {.radius = 2.0}));
  const Model one = random_model(model_config({.characters = 5,
                                               .layers = 1,
                                               .width = 8,
                                               .heads = 2,
                                               .context = 4,
                                               .hidden = 12,
                                               .norm = NormPlace::none}),
                                 2);
  const LayerSource only = [&](Index l) -> const LayerWeights& {
    return kept = load_layer(one, l);
  };
  const auto found = model_bound_everywhere(one, only, {.kind = Kind::dot}, 4,
                                            {.radius = 2.0});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->bound.scope, InputSet::ball(2.0));
}

}  // namespace model_bounds_test
}  // namespace lipscope
