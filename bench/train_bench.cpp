// Whole steps of training: forward, backward and AdamW, on one thread, against
// the speed at which this machine multiplies large matrices. CPU time: it does
// not matter who else is on the machine.

#include <benchmark/benchmark.h>
#include <malloc.h>

#include <ctime>

#include "lipscope/core/gemm_peak.h"
#include "lipscope/train/trainer.h"

namespace {

using namespace lipscope;

// multiplications and additions of the products of a step: forward, and twice
// that backward. Under the causal mask half of the scores are counted.
double flops(const LanguageModelConfig& c, double rows) {
  const double d = static_cast<double>(c.width);
  const bool tied = c.mixer == Mixer::l2 || c.mixer == Mixer::contractive_l2;
  const double block = (tied ? 2 : 4) * d * d +
                       2 * d * static_cast<double>(c.hidden) +
                       static_cast<double>(c.context) * d;
  const double head = d * static_cast<double>(c.characters);
  return 6 * rows * (static_cast<double>(c.layers) * block + head);
}

void step(benchmark::State& state) {
  mallopt(M_MMAP_MAX, 0);  // as the program does it
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  const LanguageModelConfig config{.mixer = all_mixers[state.range(0)],
                                   .characters = 65};
  Trainer trainer(config, {.threads = 1});
  TrainingState at = trainer.initial();
  std::vector<int> text(100000);
  Rng rng(1);
  for (int& c : text) c = static_cast<int>(rng.next() % 65);
  const double peak = gemm_peak<float>(1024, 1);
  trainer.step(at, text);  // buffers are made
  const std::clock_t start = std::clock();
  for (auto _ : state) trainer.step(at, text);
  const double seconds =
      static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  const double rows = static_cast<double>(trainer.batch() * config.context);
  const double steps = static_cast<double>(state.iterations());
  state.SetLabel(name_of(config.mixer));
  state.counters["characters_per_s"] = rows * steps / seconds;
  if (config.mixer == Mixer::lstm) return;
  state.counters["GFLOP/s"] = flops(config, rows) * steps / seconds / 1e9;
  state.counters["of_peak"] =
      flops(config, rows) * steps / seconds / 1e9 / peak;
}
BENCHMARK(step)->ArgName("model")->DenseRange(0, 4)->Unit(
    benchmark::kMillisecond);

}  // namespace
