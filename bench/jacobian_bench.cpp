// Products with the Jacobian of a GPT-2-sized layer, against sequence length,
// as a fraction of this machine's own matrix products.

#include <benchmark/benchmark.h>

#include "bench/layer.h"
#include "lipscope/core/gemm_peak.h"

namespace {

using namespace lipscope;

using bench::d;

// of a 2048³ product on all cores, measured once in this run
double peak() {
  static const double gflops = gemm_peak<float>(2048, 0);
  return gflops;
}

// JᵀJ v: 16nd² for the projections both ways, 16n²d between tokens, of which a
// causal mask leaves half
void gram(benchmark::State& state) {
  const Index n = state.range(0);
  const Mask mask = state.range(1) ? Mask::causal : Mask::none;
  const MultiHeadAttention<float> f(bench::layer(), {.mask = mask});
  const auto J = f.linearize(gaussian(n, d, Rng(5)).cast<float>());
  const VectorOf<float> v = random_direction(n * d, Rng(6)).cast<float>();

  for (auto _ : state) benchmark::DoNotOptimize(J->apply_adjoint(J->apply(v)));

  const double pairs = mask == Mask::causal ? 8.0 : 16.0;
  const double flops = 16.0 * n * d * d + pairs * n * n * d;
  state.counters["GFLOP/s"] = benchmark::Counter(
      flops * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["of_peak"] = benchmark::Counter(
      flops * 1e-9 / peak(), benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(gram)
    ->ArgNames({"n", "causal"})
    ->ArgsProduct({{32, 128, 512, 1024}, {0, 1}})
    ->UseRealTime();

}  // namespace
