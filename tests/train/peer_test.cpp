// Ten steps of small models against the same in PyTorch, in f64: the golden
// file is what `bench/peers/train_peer.py golden` prints.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "lipscope/train/trainer.h"
#include "lipscope/train/weight_limits.h"
#include "lipscope/train/zero_outputs.h"

namespace lipscope::test {
namespace peer_test {

using nlohmann::json;

// the one of `all` that is called so
template <class All>
auto named(const All& all, const std::string& name) {
  for (const auto e : all)
    if (name_of(e) == name) return e;
  throw std::invalid_argument("golden file: " + name);
}

std::optional<double> number(const json& j, const char* key) {
  return j.contains(key) ? std::optional<double>(j[key]) : std::nullopt;
}

LanguageModelConfig config_of(const json& m) {
  return {.mixer = named(all_mixers, m["mixer"]),
          .characters = m["characters"],
          .layers = m["layers"],
          .width = m["width"],
          .heads = m["heads"],
          .context = m["context"],
          .position_heads = m["position_heads"],
          .heads_apart = m["heads_apart"],
          .positions = named(all_positions, m["positions"]),
          .hidden = m["hidden"],
          .activation = named(std::array{Activation::gelu, Activation::max_min},
                              m["activation"]),
          .norm = named(
              std::array{NormPlace::post, NormPlace::pre, NormPlace::none},
              m["norm"]),
          .join = named(all_joins, m["residual"]),
          .join_share = m["residual_share"],
          .head_bias = m["head_bias"],
          .division = named(all_divisions, m.value("division", "layer")),
          .contraction = number(m, "contraction")};
}

TrainingOptions options_of(const json& t) {
  TrainingOptions o{
      .schedule = {.rate = t["rate"],
                   .warmup = t["warmup"],
                   .after = named(all_schedules,
                                  t.value("schedule", "inverse-sqrt")),
                   .steps = t.value("steps", 0)},
      .optimizer = named(all_optimizers, t.value("optimizer", "adamw")),
      .threads = 1};
  o.muon.rate = t.value("muon_rate", o.muon.rate);
  o.zero_outputs = t.value("zero_outputs", false);
  o.limits = {
      .lipschitz = number(t, "max_lipschitz"),
      .norm = t.value("promise", "2") == "token" ? Norm::token : Norm::two,
      .spectral = number(t, "spectral_cap"),
      .longest_token = number(t, "longest_token"),
      .rule = named(all_singular_values, t.value("singular_values", "free")),
      .matrices = named(all_matrix_limits, t.value("matrix_limits", "one")),
      .scores = t.value("score_limit", o.limits.scores)};
  return o;
}

// weights that both programs can make
TrainingState sines(Trainer& trainer) {
  TrainingState state = trainer.initial();
  const auto& tensors = trainer.model().layout().tensors();
  for (std::size_t k = 0; k < tensors.size(); ++k)
    for (Index i = 0; i < tensors[k].slot.size(); ++i) {
      const double j = static_cast<double>(i) + 1;
      state.weights[tensors[k].slot.offset + i] = static_cast<float>(
          tensors[k].initial.mean +
          0.4 * std::sin(0.37 * j * j + 78.233 * (static_cast<double>(k) + 1)));
    }
  return state;
}

TEST(TenSteps, AreThoseOfPyTorch) {
  std::ifstream file(LIPSCOPE_SOURCE "/tests/train/golden/ten_steps.json");
  const json golden = json::parse(file);
  EXPECT_EQ(golden["cases"].size(), 50u);
  for (const json& c : golden["cases"]) {
    const TrainingOptions options = options_of(c["training"]);
    Trainer trainer(config_of(c["model"]), options);
    TrainingState state = sines(trainer);
    if (options.zero_outputs)
      make_outputs_zero(trainer.model().layout(), state.weights);
    if (c["training"].contains("begin"))
      begin_within(options.limits, trainer.model(), state.weights, 1);
    for (int s = 0; s < 10; ++s) {
      Batch batch{.sequences = 3, .length = 6};
      for (int i = 5 * s; i < 5 * s + 18; ++i) {
        batch.characters.push_back((i * i + 3 * i) % 7);
        batch.targets.push_back(((i + 1) * (i + 1) + 3 * (i + 1)) % 7);
      }
      EXPECT_NEAR(trainer.step(state, batch).nll, c["losses"][s], 1e-4)
          << c["name"] << ", step " << s;
    }
  }
}

}  // namespace peer_test
}  // namespace lipscope::test
