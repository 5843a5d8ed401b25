// Whole steps of training: forward, backward and AdamW, against the speed at
// which this machine multiplies large matrices, on as many threads. Wall time:
// leave no other load on the machine, or read the CPU time, of all threads.
// precision: what the products of a step read of floats, all 24 bits (0, as
// others do by default), at least 16 (1), at least 8 (2).
// bench/peers/train_peer.py takes turns with it.

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
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

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

void step(benchmark::State& state) {
  // as the program does it
  mallopt(M_MMAP_THRESHOLD, 1 << 25);
  mallopt(M_TRIM_THRESHOLD, 1 << 29);
  const LanguageModelConfig config{.mixer = all_mixers[state.range(0)],
                                   .characters = 65};
  const int threads = static_cast<int>(state.range(1));
  Trainer trainer(
      config, {.products = all_precisions[state.range(2)], .threads = threads});
  TrainingState at = trainer.initial();
  std::vector<int> text(100000);
  Rng rng(1);
  for (int& c : text) c = static_cast<int>(rng.next() % 65);
  const double peak = gemm_peak<float>(1024, threads);
  trainer.step(at, text);  // buffers are made
  // the best step's, as the peer has them
  double seconds = 1e300, cpu = 1e300;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    const double cpu_start = cpu_seconds();
    trainer.step(at, text);
    seconds = std::min(seconds, std::chrono::duration<double>(
                                    std::chrono::steady_clock::now() - start)
                                    .count());
    cpu = std::min(cpu, cpu_seconds() - cpu_start);
  }
  const double rows = static_cast<double>(trainer.batch() * config.context);
  state.SetLabel(
      fmt::format("{}, {}: {}", name_of(config.mixer),
                  name_of(all_precisions[state.range(2)]),
                  products_in_words(all_precisions[state.range(2)])));
  state.counters["characters_per_s"] = rows / seconds;
  state.counters["seconds_a_step"] = seconds;
  state.counters["cpu_seconds_a_step"] = cpu;
  if (config.mixer == Mixer::lstm) return;
  const double speed = flops(config, rows) / seconds / 1e9;
  state.counters["GFLOP/s"] = speed;
  state.counters["of_peak"] = speed / peak;
}
BENCHMARK(step)
    ->ArgNames({"model", "threads", "precision"})
    ->ArgsProduct({{0, 1, 2, 3, 5}, {1, 2}, {0, 1, 2}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
