#include "lipscope/core/gemm_peak.h"

#include <algorithm>
#include <chrono>

#include "lipscope/core/gemm.h"
#include "lipscope/core/parallel.h"
#include "lipscope/core/rng.h"

namespace lipscope {

template <class Real>
double gemm_peak(Index size, int threads) {
  const MatrixOf<Real> a = gaussian(size, size, Rng(1)).template cast<Real>();
  const MatrixOf<Real> b = gaussian(size, size, Rng(2)).template cast<Real>();
  MatrixOf<Real> c(size, size);
  const Index strips = std::min<Index>(thread_count(threads), size);
  const Index height = (size + strips - 1) / strips;

  double best = 0.0;
  for (int attempt = 0; attempt < 5; ++attempt) {
    const auto start = std::chrono::steady_clock::now();
    parallel_for(strips, threads, [&](Index s) {
      const Rectangle strip{s * height, 0, std::min(height, size - s * height),
                            size};
      gemm<Real>(as_is(view(a, strip)), as_is(b), view(c, strip));
    });
    const std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - start;
    const double n = static_cast<double>(size);
    best = std::max(best, 2.0 * n * n * n / took.count() * 1e-9);
  }
  return best;
}

template double gemm_peak<float>(Index, int);
template double gemm_peak<double>(Index, int);

}  // namespace lipscope
