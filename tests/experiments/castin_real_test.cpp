#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "lipscope/attention/dense.h"
#include "lipscope/attention/multi_head.h"
#include "lipscope/core/errors.h"
#include "lipscope/experiments/experiment.h"
#include "lipscope/model/layer.h"
#include "lipscope/model/pass.h"
#include "lipscope/spectral/dense.h"

namespace lipscope {
namespace castin_real_test {

struct Kept {
  std::map<std::string, std::vector<Record>> records;  // by figure
  std::map<std::string, std::vector<GrowthFit>> fits;
};

Kept run(const ExperimentOptions& options) {
  Kept kept;
  std::string figure;
  castin_real(options, {[&](const Figure& f) { figure = f.name; },
                        [&](const Point&, Record r, const Answer& answer) {
                          answer(r);
                          kept.records[figure].push_back(r);
                          return r.lower;
                        },
                        [&](const Point&, const Record&, const GrowthFit& fit) {
                          kept.fits[figure].push_back(fit);
                        },
                        [](const std::string&) {}});
  return kept;
}

class CastinReal : public testing::TestWithParam<Architecture> {
 protected:
  CastinReal() {
    config = usual_config(GetParam());
    config.layers = 2;
    config.width = 4;
    config.heads = config.key_heads = 2;
    config.head_width = 2;
    config.mlp_width = 8;
    config.vocabulary = 40;
    config.positions = 128;
    for (Index i = 0; i < 4 * (2 + 4 + 8 + 16 + 32 + 64 + 98); ++i)
      ids.push_back(i * i % 37);
  }
  ModelConfig config;
  std::vector<Index> ids;
};

// The cursor only advances: the second window of length 4 begins after four of
// length 2 and one of length 4.
TEST_P(CastinReal, IsTheDenseNormAtTheInputOfAttention) {
  const Model model = random_model(config, 5);
  const Kept kept =
      run({.threads = 1, .model = &model, .model_name = "m", .ids = ids});
  ASSERT_EQ(kept.records.size(), 2u);
  for (const Record& r : kept.records.at("castin-real, m")) {
    if (r.n != 4 || r.parameters.at("sample") != 1) continue;
    const auto first = ids.begin() + 4 * 2 + 4;
    const Matrix x =
        ForwardPass<double>(model, {.threads = 1})({first, first + 4})
            .attention[*r.layer];
    const LayerWeights layer = load_layer(model, *r.layer, MapName::attn);
    const Matrix jacobian =
        dense_jacobian(layer.attention, {.mask = layer.mask}, x);
    const double exact = dense_norm(jacobian).value;
    // the experiment's own pass is in f32
    EXPECT_NEAR(*r.lower, exact, 1e-5 * exact) << *r.layer;
    EXPECT_EQ(r.mask, name_of(layer.mask));
    EXPECT_EQ(r.map, "attn");
    // f with all its biases, flattened as J has it
    const Matrix f =
        MultiHeadAttention<double>(layer.attention, {.mask = layer.mask})(x);
    const double script = std::sqrt((jacobian.transpose() * flatten(f)).norm());
    EXPECT_NEAR(r.details.at("script_value").get<double>(), script,
                1e-5 * script);
  }
}

TEST_P(CastinReal, FitsWhatItMeasuredInEachLayer) {
  const Model model = random_model(config, 5);
  const Kept kept =
      run({.threads = 1, .model = &model, .model_name = "m", .ids = ids});
  for (const auto& [figure, records] : kept.records) {
    EXPECT_EQ(records.size(), 2u * 7u * 4u);
    ASSERT_EQ(kept.fits.at(figure).size(), 2u) << figure;
    std::vector<GrowthPoint> first;
    for (const Record& r : records)
      if (*r.layer == 0) first.push_back({r.n, *r.lower, 0.0});
    EXPECT_DOUBLE_EQ(kept.fits.at(figure)[0].exponent,
                     fit_growth(first)->exponent);
  }
  // other weights, other numbers
  EXPECT_NE(kept.records.begin()->second.front().lower,
            kept.records.rbegin()->second.front().lower);
}

TEST_P(CastinReal, RefusesAModelWithoutEnoughText) {
  const Model model = random_model(config, 5);
  EXPECT_THROW(run({.threads = 1, .model = &model, .model_name = "m"}),
               InputError);
  ids.pop_back();
  EXPECT_THROW(
      run({.threads = 1, .model = &model, .model_name = "m", .ids = ids}),
      InputError);
}

INSTANTIATE_TEST_SUITE_P(Architectures, CastinReal,
                         testing::Values(Architecture::bert,
                                         Architecture::gpt2));

}  // namespace castin_real_test
}  // namespace lipscope
