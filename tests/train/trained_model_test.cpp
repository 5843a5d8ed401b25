// The folder that training leaves, read by model/: the same numbers as the
// model that learnt, for every mixer and place of the norm.

#include <gtest/gtest.h>

#include "lipscope/attention/dense.h"
#include "lipscope/attention/l2.h"
#include "lipscope/core/errors.h"
#include "lipscope/model/pass.h"
#include "lipscope/operators/check.h"
#include "lipscope/spectral/dense.h"
#include "lipscope/text/tokenizer.h"
#include "lipscope/theory/bounds.h"
#include "lipscope/theory/l2_coordinates.h"
#include "lipscope/theory/relative_positions.h"
#include "lipscope/train/model_folder.h"
#include "lipscope/train/model_stack.h"
#include "tests/io/test_files.h"
#include "tests/train/small_models.h"

namespace lipscope::test {
namespace trained_model_test {

const std::vector<int> characters = {0, 3, 1, 4, 2, 2, 0, 1, 3, 4};
const std::vector<Index> ids(characters.begin(), characters.end());

double relative(const Matrix& a, const Matrix& b) {
  return (a - b).norm() / b.norm();
}

struct Trained {
  LanguageModelConfig config;
  TemporaryFolder folder;
  VectorOf<float> weights;

  explicit Trained(const LanguageModelConfig& c) : config(c) {
    const LanguageModel<float> model(c);
    // away from the zeros and ones that norms and biases begin with
    weights = model.layout().initial<float>(3);
    weights += 0.2f * random_direction(weights.size(), Rng(4)).cast<float>() *
               std::sqrt(static_cast<float>(weights.size()));
    write_description(folder.path(),
                      {.config = c, .vocabulary = Vocabulary::of("abcde")});
    write_weights(folder / "model.safetensors", model.layout(), weights);
  }
};

std::vector<LanguageModelConfig> every_model() {
  std::vector<LanguageModelConfig> all;
  for (const Mixer mixer :
       {Mixer::dot, Mixer::l2, Mixer::l2_untied, Mixer::contractive_l2})
    for (const NormPlace norm :
         {NormPlace::post, NormPlace::pre, NormPlace::none})
      all.push_back(little(mixer, norm));
  all.push_back(little_invertible());
  for (const Mixer mixer : {Mixer::dot, Mixer::l2, Mixer::l2_untied}) {
    all.push_back(little(mixer, NormPlace::post));
    all.back().positions = Positions::relative;
  }
  for (const NormPlace norm : {NormPlace::post, NormPlace::pre})
    all.push_back(little_by_coordinate(norm));
  all.push_back(little_invertible());
  all.back().division = Division::coordinate;
  return all;
}

std::string name(const LanguageModelConfig& c) {
  return name_of(c.mixer) + " " + name_of(c.norm) +
         (c.contraction ? " invertible" : "") +
         (c.positions == Positions::relative ? " relative" : "") +
         (c.division == Division::coordinate ? " by coordinate" : "");
}

TEST(TrainedModel, RunsAsItLearnt) {
  for (const LanguageModelConfig& config : every_model()) {
    const Trained t(config);
    LanguageModel<double> learnt(config);
    const Matrix exact =
        learnt.forward(t.weights.cast<double>(), characters,
                       {.sequences = 2, .length = 5, .threads = 1});

    const Model model = load_model(t.folder.path());
    const HiddenStates<double> states =
        ForwardPass<double>(model, {.sequences = 2, .threads = 1})(ids);
    for (std::size_t l = 0; l < learnt.mixing().size(); ++l)
      EXPECT_LT(relative(states.attention[l], learnt.mixing()[l]->input()),
                1e-12)
          << name(config) << " layer " << l;
    EXPECT_LT(relative(logits(model, states.last, 1), exact), 1e-12)
        << name(config);
    EXPECT_LT(
        relative((*model_map<double>(model, {.sequences = 2}))(states.layer[0]),
                 states.last),
        1e-13)
        << name(config);
  }
}

TEST(TrainedModel, HasTheStackThatLearnt) {
  for (const LanguageModelConfig& config : every_model()) {
    const Trained t(config);
    const LanguageModel<double> learnt(config);
    const Vector weights = t.weights.cast<double>();
    const Stack expected = stack_of(learnt, weights);
    const Stack read = load_stack(load_model(t.folder.path()));
    EXPECT_EQ(read.context, expected.context) << name(config);
    EXPECT_EQ(read.kind(), expected.kind()) << name(config);
    EXPECT_EQ(read.head, expected.head) << name(config);
    const Matrix x = gaussian(5, config.width, Rng(7));
    EXPECT_LT(relative((*stack_map(read, 1))(x), (*stack_map(expected, 1))(x)),
              1e-13)
        << name(config);
  }
}

TEST(TrainedModel, HasTheDerivativeAndTheAdjointOfEveryMap) {
  for (const LanguageModelConfig& config : every_model()) {
    const Trained t(config);
    const Model model = load_model(t.folder.path());
    const LayerWeights layer = load_layer(model, 1);
    const Matrix x = gaussian(4, config.width, Rng(7));
    for (const MapName map : {MapName::core, MapName::attn, MapName::residual,
                              MapName::block, MapName::model}) {
      const MapPtr<double> f = map == MapName::model
                                   ? model_map<double>(model, {})
                                   : layer_map<double>(layer, map, {});
      const DerivativeCheck check = check_derivative(*f, x, Rng(1));
      EXPECT_LT(check.error, 1e-8) << name(config) << " " << name_of(map);
      EXPECT_GT(check.magnitude, 1e-4) << name(config) << " " << name_of(map);
      EXPECT_FALSE(check.identical);
      EXPECT_LT(adjoint_defect(*f->linearize(x), Rng(2)), 1e-13)
          << name(config) << " " << name_of(map);
    }
    // the closed form of attention/dense.h
    const MapPtr<double> attn = layer_map<double>(layer, MapName::attn, {});
    EXPECT_LT(relative(materialize(*attn->linearize(x)),
                       dense_jacobian(layer.attention,
                                      attention_options(layer, true, {}), x)),
              1e-12)
        << name(config);
  }
}

// without norms the chain rule is (I + J_mlp)(I + J_attn)
TEST(TrainedModel, HasTheDenseJacobianOfItsParts) {
  const Trained t(little(Mixer::contractive_l2, NormPlace::none));
  const LayerWeights layer = load_layer(load_model(t.folder.path()), 0);
  const Matrix x = gaussian(4, 6, Rng(7));
  const Matrix attn = dense_jacobian(
      layer.attention, {.kind = Kind::l2, .mask = Mask::causal}, x);
  const Matrix middle = x + (*layer_map<double>(layer, MapName::attn, {}))(x);
  const Matrix mlp = materialize(*Mlp<double>(layer.mlp).linearize(middle));
  const Matrix one = Matrix::Identity(x.size(), x.size());
  const MapPtr<double> block = layer_map<double>(layer, MapName::block, {});
  EXPECT_LT(
      relative(materialize(*block->linearize(x)), (one + mlp) * (one + attn)),
      1e-13);
}

// what a contractive layer is divided by is that of the context, however long
// the sequence is
TEST(TrainedModel, IsDividedByTheBoundForItsContext) {
  const Trained t(little(Mixer::contractive_l2, NormPlace::post));
  LanguageModel<double> learnt(t.config);
  learnt.forward(t.weights.cast<double>(), {{0, 1}}, {.length = 2});
  const AttentionWeights exact =
      learnt.mixing()[0]->exported(t.weights.cast<double>());
  const AttentionWeights read =
      load_layer(load_model(t.folder.path()), 0, MapName::attn).attention;
  EXPECT_LT(relative(read.output, exact.output), 1e-14);
  EXPECT_GT(learnt.mixing()[0]->attention()->divisor(t.weights.cast<double>()),
            2.0);
}

// in the inf-norm, over all inputs, of the weights as they are stored
TEST(TrainedModel, ThatIsDividedByCoordinateHasTheConstantOne) {
  for (const bool relative_positions : {true, false}) {
    LanguageModelConfig config = little_by_coordinate(NormPlace::post);
    if (!relative_positions) config.positions = Positions::table;
    const Trained t(config);
    for (Index l = 0; l < config.layers; ++l) {
      const LayerWeights layer = load_layer(load_model(t.folder.path()), l);
      const std::vector<Bound> all =
          bounds(layer.attention, {.kind = Kind::l2,
                                   .mask = Mask::causal,
                                   .n = config.context,
                                   .relative_bias = layer.relative_bias});
      const Bound best = *best_bound(all, Norm::inf);
      EXPECT_EQ(best.name, "l2_coordinates");
      // each coordinate has it, and not the largest alone
      std::vector<HeadWeights> heads;
      std::vector<double> p;
      for (Index h = 0; h < layer.attention.heads; ++h) {
        heads.push_back(head(layer.attention, h));
        p.push_back(relative_positions
                        ? relative_phi_inverse(scores_behind(
                              *layer.relative_bias, h, config.context))
                        : kim21_phi_inverse(config.context));
      }
      const Vector c = l2_coordinates(heads, p);
      EXPECT_NEAR(c.minCoeff(), 1.0, 1e-8);
      EXPECT_NEAR(c.maxCoeff(), 1.0, 1e-8);
      EXPECT_NEAR(best.value, 1.0, 1e-8);
    }
  }
}

TEST(TrainedModel, ReadsCharacters) {
  const Trained t(little(Mixer::dot, NormPlace::post));
  const Tokenizer tokenizer = load_tokenizer(t.folder.path());
  EXPECT_EQ(ids_of(tokenizer.encode("bade")),
            (std::vector<TokenId>{1, 0, 3, 4}));
}

TEST(TrainedModel, IsRefusedWithWhatIsWrong) {
  const auto message = [](const std::filesystem::path& folder) -> std::string {
    try {
      require_complete(load_model(folder));
      load_layer(load_model(folder), 0);
    } catch (const InputError& e) {
      return e.what();
    }
    return "";
  };
  const auto expect = [](const std::string& text, const std::string& word) {
    EXPECT_NE(text.find(word), std::string::npos) << text;
  };
  const Trained t(little(Mixer::l2, NormPlace::post));
  EXPECT_EQ(message(t.folder.path()), "");
  const std::string config = read_file(t.folder / "config.json");
  const auto with = [&](const std::string& key, const nlohmann::json& value) {
    nlohmann::json json = nlohmann::json::parse(config);
    if (value.is_null())
      json.erase(key);
    else
      json[key] = value;
    write_file(t.folder / "config.json", json.dump());
    return message(t.folder.path());
  };
  expect(with("mixer", "lstm"), "an LSTM has no attention");
  expect(with("mixer", "l3"), "mixer is");
  expect(with("mixer", nullptr), "no mixer");
  expect(with("width", 7), "width 7 does not divide into 2 heads");
  expect(with("width", -1), "expected 1 to");
  expect(with("num_layers", 1e300), "num_layers is");
  expect(with("norm", "around"), "expected post, pre, none");
  expect(with("characters", "abc"), "a list of code points");
  expect(with("contraction", 0.9), "contractive-l2 without norms");
  expect(with("division", "coordinate"), "l2 is not divided by its bound");
  expect(with("division", "head"), "expected layer, coordinate");
  // other shapes and other tensors than the file has
  expect(with("mlp_width", 8), "the configuration makes it [6, 8]");
  expect(with("mixer", "dot"), "h.*.attn.qkv.weight");
  expect(with("num_layers", 3), "h.2.ln_1.weight");
  write_file(t.folder / "config.json", config);
  write_file(t.folder / "model.safetensors", "nonsense");
  expect(message(t.folder.path()), "model.safetensors");
}

}  // namespace trained_model_test
}  // namespace lipscope::test
