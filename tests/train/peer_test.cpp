// Ten steps of small models against the same in PyTorch, in f64: the numbers
// are what `bench/peers/train_peer.py golden` prints.

#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/train/trainer.h"

namespace lipscope::test {
namespace peer_test {

struct Golden {
  Mixer mixer;
  NormPlace norm;
  std::vector<double> losses;
  std::optional<double> contraction = {};
};

const std::vector<Golden>& golden() {
  static const std::vector<Golden> all = {
      {Mixer::dot,
       NormPlace::post,
       {2.05203655, 1.95054861, 1.90152806, 1.83895445, 1.98969377, 1.89519717,
        1.65263425, 1.66441679, 1.71579603, 1.57773690}},
      {Mixer::l2,
       NormPlace::post,
       {2.07064112, 1.96282245, 1.93077427, 1.85626697, 1.91343819, 1.80309300,
        1.69138226, 1.71111897, 1.67182101, 1.59050573}},
      {Mixer::l2_untied,
       NormPlace::post,
       {2.05201775, 1.95027471, 1.90058159, 1.83372777, 1.99324406, 1.90262915,
        1.64809519, 1.66011089, 1.71683673, 1.57777574}},
      {Mixer::contractive_l2,
       NormPlace::post,
       {2.07065456, 1.96242750, 1.93109682, 1.85295879, 1.91969231, 1.81098605,
        1.68954790, 1.72218735, 1.68189277, 1.61411832}},
      {Mixer::lstm,
       NormPlace::post,
       {1.94586146, 1.94219550, 1.94301817, 1.93559482, 1.92274309, 1.91427995,
        1.90788444, 1.89508685, 1.88348957, 1.87831913}},
      {Mixer::dot,
       NormPlace::pre,
       {2.05029062, 1.96427015, 1.93061489, 1.85979845, 1.93783578, 1.82155709,
        1.72606825, 1.74323235, 1.69884291, 1.68925439}},
      {Mixer::l2,
       NormPlace::none,
       {1.93691987, 1.91311956, 1.87700798, 1.85709515, 1.84813774, 1.74660870,
        1.66232811, 1.65488886, 1.57077852, 1.44297825}},
      {Mixer::contractive_l2,
       NormPlace::none,
       {1.94152780, 1.92194433, 1.89400883, 1.87790155, 1.84834907, 1.78724053,
        1.75263518, 1.74843909, 1.69865204, 1.64271495},
       0.9}};
  return all;
}

// weights that both programs can make
TrainingState sines(Trainer& trainer) {
  TrainingState state = trainer.initial();
  const auto& tensors = trainer.model().layout().tensors();
  for (std::size_t k = 0; k < tensors.size(); ++k)
    for (Index j = 0; j < tensors[k].slot.size(); ++j)
      state.weights[tensors[k].slot.offset + j] = static_cast<float>(
          tensors[k].initial.mean +
          0.4 * std::sin(12.9898 * (static_cast<double>(j) + 1) +
                         78.233 * (static_cast<double>(k) + 1)));
  return state;
}

TEST(TenSteps, AreThoseOfPyTorch) {
  for (const Golden& g : golden()) {
    Trainer trainer({.mixer = g.mixer,
                     .characters = 7,
                     .layers = 2,
                     .width = 8,
                     .heads = 2,
                     .context = 6,
                     .hidden = 16,
                     .norm = g.norm,
                     .contraction = g.contraction},
                    {.schedule = {.rate = 1e-2, .warmup = 4}, .threads = 1});
    TrainingState state = sines(trainer);
    for (int s = 0; s < 10; ++s) {
      Batch batch{.sequences = 3, .length = 6};
      for (int i = 5 * s; i < 5 * s + 18; ++i) {
        batch.characters.push_back((i * i + 3 * i) % 7);
        batch.targets.push_back(((i + 1) * (i + 1) + 3 * (i + 1)) % 7);
      }
      EXPECT_NEAR(trainer.step(state, batch).nll, g.losses[s], 1e-4)
          << name_of(g.mixer) << " " << name_of(g.norm) << ", step " << s;
    }
  }
}

}  // namespace peer_test
}  // namespace lipscope::test
