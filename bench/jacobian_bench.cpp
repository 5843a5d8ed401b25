// Products with the Jacobian of a GPT-2-sized layer, against sequence length,
// as a fraction of this machine's own matrix products.

#include <benchmark/benchmark.h>

#include "lipscope/attention/multi_head.h"
#include "lipscope/core/gemm_peak.h"
#include "lipscope/core/rng.h"

namespace {

using namespace lipscope;

constexpr Index d = 768, heads = 12;

// of a 2048³ product on all cores, measured once in this run
double peak() {
  static const double gflops = gemm_peak<float>(2048, 0);
  return gflops;
}

AttentionWeights layer() {
  AttentionWeights w;
  w.heads = heads;
  w.query = 0.02 * gaussian(d, d, Rng(1));
  w.key = 0.02 * gaussian(d, d, Rng(2));
  w.value = 0.02 * gaussian(d, d, Rng(3));
  w.output = 0.02 * gaussian(d, d, Rng(4));
  return w;
}

// JᵀJ v: 16nd² for the projections both ways, 16n²d between tokens, of which a
// causal mask leaves half
void gram(benchmark::State& state) {
  const Index n = state.range(0);
  const Mask mask = state.range(1) ? Mask::causal : Mask::none;
  const MultiHeadAttention<float> f(layer(), {.mask = mask});
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
