// Whole measurements of a GPT-2-sized layer, testimony in f64 included: the
// linearisation, the search and the witness. `above`: with an enclosure.

#include <benchmark/benchmark.h>

#include <cmath>

#include "bench/layer.h"
#include "lipscope/attention/common_mode.h"
#include "lipscope/spectral/estimate.h"

namespace {

using namespace lipscope;

// a residual of 5e-3 leaves the value itself good to 1e-4; `error` shows it
constexpr double tolerance = 5e-3;

std::vector<Measurement> run(const AttentionWeights& weights,
                             const AttentionOptions& options, const Matrix& x,
                             double to, bool above) {
  const MultiHeadAttention<float> search(weights, options);
  const MultiHeadAttention<double> witness(weights, options);
  return measure_norms(search, witness, x,
                       {.tolerance = to,
                        .from_above = above,
                        .sequences = options.sequences,
                        .common_shift = common_shift_of(search)});
}

void measure(benchmark::State& state) {
  const AttentionWeights weights = bench::layer();
  const AttentionOptions options{.mask = state.range(1) ? Mask::causal
                                                        : Mask::none};
  const Matrix x = gaussian(state.range(0), bench::d, Rng(5));
  Measurement m;
  const bool above = state.range(2) == 1;
  for (auto _ : state) m = run(weights, options, x, tolerance, above).front();

  const double exact = run(weights, options, x, 1e-5, false).front().lower;
  state.counters["steps"] = m.steps;
  state.counters["error"] = std::abs(m.lower - exact) / exact;
}
BENCHMARK(measure)
    ->ArgNames({"n", "causal", "above"})
    ->ArgsProduct({{128, 512, 1024}, {0, 1}, {0, 1}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

// ten sequences of 32 tokens: together, or one after the other
void sweep(benchmark::State& state) {
  const AttentionWeights weights = bench::layer();
  const Index count = 10, n = 32;
  const bool together = state.range(0) == 1, above = state.range(1) == 1;
  const Matrix x = gaussian(count * n, bench::d, Rng(5));
  for (auto _ : state) {
    if (together) {
      AttentionOptions options;
      options.sequences = count;
      benchmark::DoNotOptimize(run(weights, options, x, tolerance, above));
    } else {
      for (Index i = 0; i < count; ++i)
        benchmark::DoNotOptimize(
            run(weights, {}, x.middleRows(i * n, n), tolerance, above));
    }
  }
}
BENCHMARK(sweep)
    ->ArgNames({"together", "above"})
    ->ArgsProduct({{0, 1}, {0, 1}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
