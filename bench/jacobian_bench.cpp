// Products with the Jacobian of a GPT-2-sized layer, against sequence length,
// as a fraction of this machine's own matrix products.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>

#include "bench/layer.h"
#include "lipscope/core/gemm_peak.h"

namespace {

using namespace lipscope;

using bench::d;

// The best of several products and the best of several 2048³ matrix products,
// taken in turns: a machine that is shared with others slows down both alike
// over minutes, but not over the moments between them.
double fraction_of_peak(double gflop, const std::function<void()>& product) {
  double peak = 0.0, rate = 0.0;
  for (int round = 0; round < 6; ++round) {
    peak = std::max(peak, gemm_peak<float>(2048, 0));
    for (int i = 0; i < 4; ++i) {
      const auto start = std::chrono::steady_clock::now();
      product();
      const std::chrono::duration<double> took =
          std::chrono::steady_clock::now() - start;
      rate = std::max(rate, gflop / took.count());
    }
  }
  return rate / peak;
}

struct Setting {
  Index n;
  Mask mask;
  MultiHeadAttention<float> f{bench::layer(), {.mask = mask}};
  std::unique_ptr<LinearOperator<float>> J =
      f.linearize(gaussian(n, d, Rng(5)).cast<float>());
  VectorOf<float> v = random_direction(n * d, Rng(6)).cast<float>();

  explicit Setting(const benchmark::State& state)
      : n(state.range(0)), mask(state.range(1) ? Mask::causal : Mask::none) {}

  // one product: 8nd² for the projections, 8n²d between tokens, of which a
  // causal mask leaves half
  double gflop() const {
    const double pairs = mask == Mask::causal ? 4.0 : 8.0;
    return 1e-9 * (8.0 * n * d * d + pairs * n * n * d);
  }
};

void run(benchmark::State& state, double gflop,
         const std::function<void()>& product) {
  for (auto _ : state) product();
  state.counters["GFLOP/s"] =
      benchmark::Counter(gflop, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["of_peak"] = fraction_of_peak(gflop, product);
}

// J v
void jvp(benchmark::State& state) {
  const Setting s(state);
  run(state, s.gflop(), [&] { benchmark::DoNotOptimize(s.J->apply(s.v)); });
}
BENCHMARK(jvp)
    ->ArgNames({"n", "causal"})
    ->ArgsProduct({{128, 512, 1024}, {0, 1}})
    ->UseRealTime();

// Jᵀ u
void vjp(benchmark::State& state) {
  const Setting s(state);
  run(state, s.gflop(),
      [&] { benchmark::DoNotOptimize(s.J->apply_adjoint(s.v)); });
}
BENCHMARK(vjp)
    ->ArgNames({"n", "causal"})
    ->ArgsProduct({{128, 512, 1024}, {0, 1}})
    ->UseRealTime();

// JᵀJ v
void gram(benchmark::State& state) {
  const Setting s(state);
  run(state, 2 * s.gflop(),
      [&] { benchmark::DoNotOptimize(s.J->apply_adjoint(s.J->apply(s.v))); });
}
BENCHMARK(gram)
    ->ArgNames({"n", "causal"})
    ->ArgsProduct({{32, 128, 256, 512, 1024, 2048, 4096}, {0, 1}})
    ->UseRealTime();

}  // namespace
