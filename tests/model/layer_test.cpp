#include "lipscope/model/layer.h"

#include <gtest/gtest.h>

#include "lipscope/model/pass.h"
#include "lipscope/operators/check.h"
#include "lipscope/spectral/dense.h"
#include "lipscope/spectral/estimate.h"
#include "tests/model/reference.h"
#include "tests/support/tolerance.h"

namespace lipscope {
namespace layer_test {

double relative(const Matrix& a, const Matrix& b) {
  return (a - b).norm() / b.norm();
}

class EveryArchitecture : public testing::TestWithParam<Architecture> {
 protected:
  EveryArchitecture() {
    test::write_model(folder.path(), config, tensors);
    model.emplace(load_model(folder.path()));
  }

  template <class Real>
  MapPtr<Real> map(MapName name, const ModelMapOptions& options = {}) const {
    if (name == MapName::model) return model_map<Real>(*model, options);
    return layer_map<Real>(load_layer(*model, 1, name), name, options);
  }

  // the point of a map, in layer 1
  Matrix point(MapName name) const {
    const HiddenStates<double> states =
        ForwardPass<double>(*model, {.threads = 1})(ids);
    if (name == MapName::model) return states.layer[0];
    return name == MapName::core || name == MapName::attn ? states.attention[1]
                                                          : states.layer[1];
  }

  const std::vector<Index> ids{3, 1, 4, 1, 5};
  const ModelConfig config = test::small_config(GetParam());
  const test::Tensors tensors = test::random_tensors(config, 11);
  const test::TemporaryFolder folder;
  std::optional<Model> model;
};

TEST_P(EveryArchitecture, RunsAsThePaperDrawsIt) {
  const std::vector<Matrix> exact =
      test::Reference{config, tensors}.states(ids);
  const HiddenStates<double> states = ForwardPass<double>(*model, {})(ids);
  ASSERT_EQ(states.layer.size(), 2u);
  EXPECT_LT(relative(states.layer[0], exact[0]), 1e-14);
  EXPECT_LT(relative(states.layer[1], exact[1]), 1e-13);
  EXPECT_LT(relative(states.last, exact[2]), 1e-13);
  EXPECT_LT(relative((*map<double>(MapName::model))(exact[0]), exact[2]),
            1e-13);
  EXPECT_LT(relative((*layer_map<double>(load_layer(*model, 0), MapName::block,
                                         {}))(exact[0]),
                     exact[1]),
            1e-13);
  if (config.pre_norm()) {
    const std::string norm = GetParam() == Architecture::gpt2
                                 ? "h.1.ln_1"
                                 : "layers.1.input_layernorm";
    const test::Reference reference{config, tensors};
    EXPECT_LT(relative(states.attention[1], reference.norm(exact[1], norm)),
              1e-13);
  } else {
    EXPECT_EQ(states.attention[1], states.layer[1]);
  }
  // residual is x + attn(norm x), or norm(x + attn x)
  const LayerWeights layer = load_layer(*model, 1);
  const Matrix attn =
      (*map<double>(MapName::attn))(states.attention[1]) + states.layer[1];
  EXPECT_LT(relative((*map<double>(MapName::residual))(states.layer[1]),
                     config.pre_norm()
                         ? attn
                         : LayerNorm<double>(layer.attention_norm)(attn)),
            1e-13);

  const HiddenStates<float> single = ForwardPass<float>(*model, {})(ids);
  EXPECT_LT(relative(single.last.cast<double>(), exact[2]), 1e-5);
}

TEST_P(EveryArchitecture, HasTheDerivativeAndTheAdjointOfEveryMap) {
  for (const MapName name : {MapName::core, MapName::attn, MapName::residual,
                             MapName::block, MapName::model})
    for (const Kind kind : {Kind::dot, Kind::l2, Kind::sigmoid}) {
      if (kind == Kind::l2 && config.rope) continue;
      const MapPtr<double> f = map<double>(name, {.kind = kind});
      const Matrix x = point(name);
      const DerivativeCheck check = check_derivative(*f, x, Rng(1));
      EXPECT_LT(check.error, 1e-8) << name_of(name) << " " << name_of(kind);
      EXPECT_GT(check.magnitude, 1e-3);
      EXPECT_FALSE(check.identical);
      EXPECT_LT(adjoint_defect(*f->linearize(x), Rng(2)), 1e-13)
          << name_of(name);
    }
}

// a dense Jacobian from nothing but values
Matrix by_differences(const Map<double>& f, const Matrix& x) {
  const double h = 1e-4;
  Matrix J;
  for (Index j = 0; j < x.size(); ++j) {
    const auto at = [&](double step) {
      Matrix moved = x;
      moved.data()[j] += step;
      return f(moved);
    };
    const Matrix column =
        (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
    if (j == 0) J.resize(column.size(), x.size());
    J.col(j) = flatten(column);
  }
  return J;
}

TEST_P(EveryArchitecture, HasTheConstantsOfTheDenseJacobianByDifferences) {
  for (const MapName name : {MapName::core, MapName::attn, MapName::residual,
                             MapName::block, MapName::model})
    for (const Mask mask : {Mask::none, Mask::causal}) {
      const ModelMapOptions options{.mask = mask};
      const MapPtr<double> f = map<double>(name, options);
      const Matrix x = point(name);
      const Matrix J = by_differences(*f, x);
      EXPECT_LT(relative(materialize(*f->linearize(x)), J), 1e-8)
          << name_of(name);
      const double exact = dense_norm(J).value;
      for (const Index dense_limit : {0, 512}) {
        const Measurement m =
            measure_norm(*map<float>(name, options), *f, x,
                         {.tolerance = 1e-7, .dense_limit = dense_limit});
        EXPECT_NEAR(m.lower, exact, 1e-7 * exact)
            << name_of(name) << " " << name_of(m.lower_by);
        EXPECT_TRUE(m.converged) << name_of(name);
      }
    }
}

// layers that are read as they are passed, for several batches at once
TEST_P(EveryArchitecture, GivesAWalkTheStatesOfAPassToTheLastBit) {
  const std::vector<std::pair<std::vector<Index>, Index>> batches = {
      {ids, 1}, {{2, 7, 1, 8, 2, 8}, 2}, {{3, 1, 4}, 1}};
  std::vector<StackedSequences<double>> embedded;
  std::vector<HiddenStates<double>> passed;
  for (const auto& [tokens, sequences] : batches) {
    embedded.push_back({embed<double>(*model, tokens, sequences), sequences});
    passed.push_back(ForwardPass<double>(
        *model, {.sequences = sequences, .threads = 1})(tokens));
  }
  LayerWalk<double> walk(*model, embedded, {.threads = 1});
  for (; walk.layer() < model->config.layers; walk.advance())
    for (std::size_t b = 0; b < batches.size(); ++b) {
      EXPECT_EQ(walk.layer_input(b), passed[b].layer[walk.layer()]);
      EXPECT_EQ(walk.attention_input(b), passed[b].attention[walk.layer()]);
    }
  EXPECT_NE(walk.layer_input(0), passed[0].layer[1]);
  EXPECT_THROW(walk.advance(), std::invalid_argument);
}

TEST_P(EveryArchitecture, TreatsStackedSequencesOneByOne) {
  const std::vector<Index> other{2, 7, 1, 8, 2};
  std::vector<Index> both = ids;
  both.insert(both.end(), other.begin(), other.end());
  const auto states = [&](const std::vector<Index>& tokens, Index sequences) {
    return ForwardPass<double>(*model, {.sequences = sequences})(tokens);
  };
  const HiddenStates<double> stacked = states(both, 2);
  EXPECT_LT(relative(stacked.last.topRows(5), states(ids, 1).last), 1e-13);
  EXPECT_LT(relative(stacked.last.bottomRows(5), states(other, 1).last), 1e-13);
  // stopping early changes nothing, whenever that is known
  for (const Index known : {-1, 2}) {
    const HiddenStates<double> part =
        ForwardPass<double>(*model, {.sequences = 2, .layers = known})(both, 2);
    ASSERT_EQ(part.layer.size(), 2u);
    EXPECT_EQ(part.layer[1], stacked.layer[1]);
    EXPECT_EQ(part.attention[1], stacked.attention[1]);
    EXPECT_EQ(part.last.size(), 0);
  }

  for (const MapName name : {MapName::block, MapName::model}) {
    const Matrix& x = stacked.layer[name == MapName::model ? 0 : 1];
    const Matrix J =
        materialize(*map<double>(name, {.sequences = 2})->linearize(x));
    const Matrix first =
        materialize(*map<double>(name)->linearize(x.topRows(5)));
    EXPECT_LT(relative(J.topLeftCorner(40, 40), first), 1e-12);
    EXPECT_EQ(J.topRightCorner(40, 40).norm(), 0.0);
  }
}

TEST_P(EveryArchitecture, PutsTrueL2AttentionOnTheSameWeights) {
  const LayerWeights layer = load_layer(*model, 1, MapName::attn);
  const ModelMapOptions options{.kind = Kind::l2};
  if (config.rope) {
    EXPECT_THROW(layer_map<double>(layer, MapName::attn, options),
                 std::invalid_argument);
    return;
  }
  AttentionWeights tied = layer.attention;
  tied.key.resize(0, 0);
  tied.key_bias.resize(0);
  const Matrix x = point(MapName::attn);
  const Matrix y = (*layer_map<double>(layer, MapName::attn, options))(x);
  EXPECT_EQ(y, MultiHeadAttention<double>(
                   tied, {.kind = Kind::l2, .mask = config.mask(0)})(x));
  EXPECT_GT(relative(y, (*map<double>(MapName::attn))(x)), 1e-2);
}

TEST_P(EveryArchitecture, ChoosesHeadsOfAttentionOnly) {
  const Matrix x = point(MapName::attn);
  Matrix sum = Matrix::Zero(x.rows(), x.cols());
  for (Index h = 0; h < config.heads; ++h)
    sum += (*map<double>(MapName::attn, {.heads = {h}}))(x);
  // each has the bias of the output projection, the sum should have one
  const LayerWeights layer = load_layer(*model, 1, MapName::attn);
  sum.rowwise() -= (static_cast<double>(config.heads) - 1) *
                   layer.attention.output_bias.transpose();
  EXPECT_LT(relative(sum, (*map<double>(MapName::attn))(x)), 1e-13);
  for (const MapName name : {MapName::residual, MapName::block})
    EXPECT_THROW(map<double>(name, {.heads = {0}}), std::invalid_argument);
}

TEST_P(EveryArchitecture, HasTheLogitsOfItsHead) {
  if (GetParam() == Architecture::bert) return;
  const Matrix last = ForwardPass<double>(*model, {})(ids).last;
  const std::string head =
      GetParam() == Architecture::gpt2 ? "wte.weight" : "lm_head.weight";
  EXPECT_LT(relative(logits(*model, last),
                     last * tensors.at(head).values.transpose()),
            1e-14);
}

INSTANTIATE_TEST_SUITE_P(Small, EveryArchitecture,
                         testing::Values(Architecture::gpt2, Architecture::bert,
                                         Architecture::llama));

TEST(Layer, RefusesMapsItWasNotLoadedFor) {
  const Model model = random_model(test::small_config(Architecture::gpt2), 1);
  const LayerWeights attention = load_layer(model, 0, MapName::attn);
  EXPECT_THROW(layer_map<double>(attention, MapName::residual, {}),
               std::invalid_argument);
  EXPECT_THROW(layer_map<double>(load_layer(model, 0, MapName::residual),
                                 MapName::block, {}),
               std::invalid_argument);
  EXPECT_THROW(layer_map<double>(load_layer(model, 0), MapName::model, {}),
               std::invalid_argument);
}

}  // namespace layer_test
}  // namespace lipscope
