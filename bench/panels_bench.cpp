// The hand-written product of core/panels.h on one thread, against libraries at
// the shapes of a layer: rows of tokens times a square right factor. The right
// factor is cut into panels beforehand, as the maps of this library do.
//
// All take turns, so that a machine that is shared with others slows them down
// alike, and the best time of each counts. `panels`, `eigen` and `onednn` are
// their speeds as shares of the fastest. oneDNN has no product of doubles.
// `pairs` is the speed of core/bf16_pairs.h, which reads eight bits of each
// number, as a multiple of the fastest that reads all, where the CPU has them.

#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "lipscope/core/bf16_pairs.h"
#include "lipscope/core/gemm.h"
#include "lipscope/core/panels.h"
#include "lipscope/core/rng.h"

namespace {

using namespace lipscope;

struct Rival {
  std::string name;
  std::function<void()> product;
  double seconds = std::numeric_limits<double>::infinity();
};

// of this thread: what others take of the machine meanwhile does not count
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         1e-9 * static_cast<double>(now.tv_nsec);
}

void time_once(Rival& rival) {
  const double before = cpu_seconds();
  rival.product();
  rival.seconds = std::min(rival.seconds, cpu_seconds() - before);
}

template <class Real>
void product_by(benchmark::State& state) {
  const Index m = state.range(0), size = state.range(1);
  const MatrixOf<Real> a = gaussian(m, size, Rng(1)).template cast<Real>();
  const MatrixOf<Real> b = gaussian(size, size, Rng(2)).template cast<Real>();
  MatrixOf<Real> c(m, size);
  VectorOf<Real> cut(panels::packed_size<Real>(size, size));
  panels::pack<Real>({b.data(), size, false}, size, size, cut.data());
  const WithoutTiles without;  // they are faster, and not what is asked here

  std::vector<Rival> rivals;
  rivals.push_back({"panels", [&] {
                      panels::multiply<Real>({a.data(), size, false},
                                             cut.data(), size, size, 0, size,
                                             c.data(), size, m, false);
                    }});
  rivals.push_back({"eigen", [&] { c.noalias() = a * b; }});
  if constexpr (std::is_same_v<Real, float>)
    rivals.push_back(
        {"onednn", [&] { gemm<Real>(as_is(a), as_is(b), view(c)); }});
  std::vector<Rival> of_eight_bits;
  std::vector<std::uint16_t> memory(bf16_pairs::packed_size(size, size) + 32);
  if constexpr (std::is_same_v<Real, float>) {
    void* at = memory.data();
    std::size_t bytes = 2 * memory.size();
    auto* strips = static_cast<std::uint16_t*>(std::align(64, 1, at, bytes));
    if (bf16_pairs::available()) {
      bf16_pairs::pack({b.data(), size, false}, size, size, strips);
      of_eight_bits.push_back(
          {"pairs", [&, strips] {
             bf16_pairs::multiply({a.data(), size, false}, {strips, size, size},
                                  0, size, c.data(), size, m, false);
           }});
    }
  }
  for (auto _ : state) {
    for (Rival& rival : rivals) time_once(rival);
    for (Rival& rival : of_eight_bits) time_once(rival);
  }

  double best = rivals.front().seconds;
  for (const Rival& rival : rivals) best = std::min(best, rival.seconds);
  const double flop = 2.0 * static_cast<double>(m) * static_cast<double>(size) *
                      static_cast<double>(size);
  state.counters["GFLOP/s"] = 1e-9 * flop / best;
  for (const Rival& rival : rivals)
    state.counters[rival.name] = best / rival.seconds;
  for (const Rival& rival : of_eight_bits)
    state.counters[rival.name] = best / rival.seconds;
}

BENCHMARK(product_by<double>)
    ->Name("f64")
    ->ArgNames({"rows", "size"})
    ->ArgsProduct({{32, 64, 128, 256, 512}, {384, 768}})
    ->Iterations(60)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(product_by<float>)
    ->Name("f32")
    ->ArgNames({"rows", "size"})
    ->ArgsProduct({{32, 64, 128, 256, 512}, {384, 768}})
    ->Iterations(60)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
