// Products with the Jacobian of a GPT-2-sized layer, against sequence length,
// as a fraction of this machine's own matrix products. One thread, by the time
// it had of the CPU: what else the machine does hardly counts. Where the CPU
// has bf16 tiles, with and without them.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>

#include "bench/layer.h"
#include "lipscope/core/bf16_tiles.h"
#include "lipscope/core/gemm.h"

namespace {

using namespace lipscope;

using bench::d;

double cpu_seconds(const std::function<void()>& work) {
  const auto now = [] {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) +
           1e-9 * static_cast<double>(t.tv_nsec);
  };
  const double start = now();
  work();
  return now() - start;
}

// The best of several products and the best of several 2048³ matrix products,
// taken in turns: both slow down alike while others use the memory.
double fraction_of_peak(double gflop, const std::function<void()>& product) {
  constexpr Index size = 2048;
  const MatrixOf<float> a = MatrixOf<float>::Constant(size, size, 0.5f);
  MatrixOf<float> c(size, size);
  double peak = 0.0, rate = 0.0;
  for (int round = 0; round < 4; ++round) {
    peak = std::max(peak, 2e-9 * size * size * size / cpu_seconds([&] {
                            gemm<float>(as_is(a), as_is(a), view(c));
                          }));
    for (int i = 0; i < 3; ++i)
      rate = std::max(rate, gflop / cpu_seconds(product));
  }
  return rate / peak;
}

struct Setting {
  Index n;
  Mask mask;
  std::optional<WithoutTiles> no_tiles;
  std::unique_ptr<MultiHeadAttention<float>> f;
  std::unique_ptr<LinearOperator<float>> J;
  VectorOf<float> v = random_direction(n * d, Rng(6)).cast<float>();

  explicit Setting(const benchmark::State& state)
      : n(state.range(0)), mask(state.range(1) ? Mask::causal : Mask::none) {
    if (state.range(2) == 0) no_tiles.emplace();
    f = std::make_unique<MultiHeadAttention<float>>(
        bench::layer(), AttentionOptions{.mask = mask, .threads = 1});
    J = f->linearize(gaussian(n, d, Rng(5)).cast<float>());
  }

  // one product: 8nd² for the projections, 8n²d between tokens, of which a
  // causal mask leaves half
  double gflop() const {
    const double pairs = mask == Mask::causal ? 4.0 : 8.0;
    const double size = static_cast<double>(n);
    return 1e-9 * (8.0 * size * d * d + pairs * size * size * d);
  }
};

void run(benchmark::State& state, double gflop,
         const std::function<void()>& product) {
  for (auto _ : state) product();
  state.counters["of_peak"] = fraction_of_peak(gflop, product);
}

// J v
void jvp(benchmark::State& state) {
  const Setting s(state);
  run(state, s.gflop(), [&] { benchmark::DoNotOptimize(s.J->apply(s.v)); });
}

// Jᵀ u
void vjp(benchmark::State& state) {
  const Setting s(state);
  run(state, s.gflop(),
      [&] { benchmark::DoNotOptimize(s.J->apply_adjoint(s.v)); });
}

// JᵀJ v
void gram(benchmark::State& state) {
  const Setting s(state);
  run(state, 2 * s.gflop(),
      [&] { benchmark::DoNotOptimize(s.J->apply_adjoint(s.J->apply(s.v))); });
}

void sizes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"n", "causal", "tiles"})->Unit(benchmark::kMillisecond);
  for (const int tiles : {0, 1})
    if (tiles == 0 || bf16_tiles::available())
      for (const int causal : {0, 1})
        for (const int n : {32, 128, 256, 512, 1024, 2048, 4096})
          b->Args({n, causal, tiles});
}
BENCHMARK(jvp)->Apply(sizes)->MinTime(0.05);
BENCHMARK(vjp)->Apply(sizes)->MinTime(0.05);
BENCHMARK(gram)->Apply(sizes)->MinTime(0.05);

}  // namespace
