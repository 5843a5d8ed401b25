#include "lipscope/core/gemm.h"

#include <dnnl.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <type_traits>

#include "lipscope/core/bf16_pairs.h"
#include "lipscope/core/bf16_tiles.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/gemm_parts.h"
#include "lipscope/core/panels.h"
#include "lipscope/core/parallel.h"
#include "lipscope/core/thread_scratch.h"

namespace lipscope {
namespace {

// bytes of the panels of a right factor that are kept between products
constexpr Index most_kept = Index{1} << 25;

Floats floats(const Factor<float>& f) {
  return {f.matrix.data(), f.matrix.outerStride(), f.transposed};
}

template <class Number>
Number* aligned(Index count) {
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(Number);
  void* p = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (p == nullptr) throw std::bad_alloc();
  return static_cast<Number*>(p);
}

// Where a right factor is cut for one product: so many numbers.
template <class Number>
Number* room_for(Index count) {
  return static_cast<Number*>(thread_scratch(
      Scratch::right_factor, static_cast<std::size_t>(count) * sizeof(Number)));
}

bool only_f32 = false;

// ---- by tiles

// rows and columns of a right factor that are cut at a time
constexpr Index deepest = 384, widest = 1024;

bf16_tiles::Parts parts_of(Precision precision) {
  switch (precision) {
    case Precision::full:
      return bf16_tiles::Parts::three;
    case Precision::high:
      return bf16_tiles::Parts::two;
    case Precision::bf16:
      return bf16_tiles::Parts::one;
  }
  throw std::invalid_argument("gemm: no such precision");
}

// A right factor that is cut for one product.
bf16_tiles::Packed cut_for_now(const Factor<float>& b, Precision precision) {
  const bf16_tiles::Parts parts = parts_of(precision);
  std::uint16_t* to = room_for<std::uint16_t>(
      bf16_tiles::packed_size(b.rows(), b.cols(), parts));
  bf16_tiles::pack(floats(b), b.rows(), b.cols(), parts, to);
  return {to, b.rows(), b.cols(), parts};
}

bool tiles_available() { return !only_f32 && bf16_tiles::available(); }

// Whether tiles gain where a product of any shape is wanted: a number that is
// cut must serve in enough products. Measured: at 3 parts they gain 1.1 at
// [98×384] and lose below.
bool tiles_gain(Index m, Index n, Index k, Precision precision) {
  const bool full = precision == Precision::full;
  return tiles_available() && k >= (full ? 96 : 32) &&
         m * n >= (full ? 72 : 36) * (m + n);
}

void multiply_by_tiles(const Factor<float>& a, const bf16_tiles::Packed& b,
                       Index first, View<float>& c, Into into) {
  bf16_tiles::multiply(floats(a), b, first, c.cols(), c.data(), c.outerStride(),
                       c.rows(), into == Into::add);
}

// piece by piece of B, each small enough to stay in cache
void multiply_cutting_tiles(const Factor<float>& a, const Factor<float>& b,
                            View<float>& c, Into into, Precision precision) {
  for (Index j = 0; j < c.cols(); j += widest)
    for (Index q = 0; q < b.rows(); q += deepest) {
      const Index cols = std::min(widest, c.cols() - j);
      const Index deep = std::min(deepest, b.rows() - q);
      View<float> part = view(c, {0, j, c.rows(), cols});
      multiply_by_tiles(
          cols_of(a, q, deep),
          cut_for_now(rows_of(cols_of(b, j, cols), q, deep), precision), 0,
          part, q > 0 ? Into::add : into);
    }
}

// ---- by pairs

bool pairs_available(Precision precision) {
  return precision == Precision::bf16 && !only_f32 && bf16_pairs::available();
}

void multiply_by_pairs(const Factor<float>& a, const bf16_pairs::Packed& b,
                       Index first, View<float>& c, Into into) {
  bf16_pairs::multiply(floats(a), b, first, c.cols(), c.data(), c.outerStride(),
                       c.rows(), into == Into::add);
}

// As many columns of B at a time as stay in cache. The sums are not cut.
void multiply_cutting_pairs(const Factor<float>& a, const Factor<float>& b,
                            View<float>& c, Into into) {
  const Index k = b.rows();
  const Index most = std::max<Index>(1, (Index{1} << 18) / (48 * k)) * 48;
  for (Index j = 0; j < c.cols(); j += most) {
    const Index cols = std::min(most, c.cols() - j);
    std::uint16_t* to =
        room_for<std::uint16_t>(bf16_pairs::packed_size(k, cols));
    bf16_pairs::pack(floats(cols_of(b, j, cols)), k, cols, to);
    View<float> part = view(c, {0, j, c.rows(), cols});
    multiply_by_pairs(a, {to, k, cols}, 0, part, into);
  }
}

// ---- by panels

template <class Real>
panels::Numbers<Real> numbers(const Factor<Real>& f) {
  return {f.matrix.data(), f.matrix.outerStride(), f.transposed};
}

// columns [first, first + c.cols()) of A B, for a B [k×n] in panels
template <class Real>
void multiply_by_panels(const Factor<Real>& a, const Real* b, Index n,
                        Index first, View<Real>& c, Into into) {
  panels::multiply(numbers(a), b, a.cols(), n, first, c.cols(), c.data(),
                   c.outerStride(), c.rows(), into == Into::add);
}

// As many columns of B at a time as stay in cache. The sums are not cut: a
// piece of them is the same whatever is cut beside it.
template <class Real>
void multiply_cutting_panels(const Factor<Real>& a, const Factor<Real>& b,
                             View<Real>& c, Into into) {
  const Index most =
      std::max<Index>(1, (Index{1} << 17) / (48 * b.rows())) * 48;
  for (Index j = 0; j < c.cols(); j += most) {
    const Index cols = std::min(most, c.cols() - j);
    Real* to = room_for<Real>(panels::packed_size<Real>(b.rows(), cols));
    panels::pack(numbers(cols_of(b, j, cols)), b.rows(), cols, to);
    View<Real> part = view(c, {0, j, c.rows(), cols});
    multiply_by_panels(a, to, cols, 0, part, into);
  }
}

// ---- by libraries

// Signals wait while this lives. A handler that runs on a thread in the middle
// of an f32 product of oneDNN 2.6 (after Ctrl-C, a timer, a profiler) writes
// over the heap: those products leave the stack pointer where it must not be
// used. What the thread does itself, as reading a wrong address, still ends it.
class SignalsWait {
 public:
  SignalsWait() {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT})
      sigdelset(&all, fault);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsWait() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;

 private:
  sigset_t before_;
};

void gemm_on_this_thread(const Factor<float>& a, const Factor<float>& b,
                         View<float>& c, Into into) {
  const OneThread one_thread;
  const SignalsWait signals_wait;
  const dnnl_status_t status = dnnl_sgemm(
      a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', c.rows(), c.cols(),
      a.cols(), 1.0f, a.matrix.data(), a.matrix.outerStride(), b.matrix.data(),
      b.matrix.outerStride(), into == Into::add ? 1.0f : 0.0f, c.data(),
      c.outerStride());
  if (status != dnnl_success)
    throw RunError(fmt::format("gemm: oneDNN answers {} for [{}x{}] = [{}x{}]",
                               static_cast<int>(status), c.rows(), c.cols(),
                               c.rows(), a.cols()));
}

template <class A, class B>
void accumulate(const A& a, const B& b, View<double>& c, Into into) {
  if (into == Into::add)
    c.noalias() += a * b;
  else
    c.noalias() = a * b;
}

void gemm_on_this_thread(const Factor<double>& a, const Factor<double>& b,
                         View<double>& c, Into into) {
  // For a few numbers Eigen takes other ways, some of which depend on where the
  // matrices stand.
  if (a.rows() + a.cols() + b.cols() < 24) {
    multiply_cutting_panels(a, b, c, into);
    return;
  }
  const auto& A = a.matrix;
  const auto& B = b.matrix;
  if (a.transposed && b.transposed)
    accumulate(A.transpose(), B.transpose(), c, into);
  else if (a.transposed)
    accumulate(A.transpose(), B, c, into);
  else if (b.transposed)
    accumulate(A, B.transpose(), c, into);
  else
    accumulate(A, B, c, into);
}

}  // namespace

std::string name_of(Precision precision) {
  switch (precision) {
    case Precision::full:
      return "full";
    case Precision::high:
      return "high";
    case Precision::bf16:
      return "bf16";
  }
  throw std::invalid_argument("name_of: no such precision");
}

std::string products_in_words(Precision precision) {
  if (tiles_available()) {
    const char* const parts[] = {"one part", "two parts", "three parts"};
    return fmt::format("bf16 tiles, {}",
                       parts[static_cast<int>(parts_of(precision)) - 1]);
  }
  return pairs_available(precision) ? "bf16 pairs" : "f32";
}

template <class Real>
Kernel kernel_for(Index n, Index k, Precision precision, bool beforehand) {
  if constexpr (std::is_same_v<Real, float>) {
    const bool full = precision == Precision::full;
    if (tiles_available() &&
        (beforehand ? n >= 48 && k >= 48
                    : n >= (full ? 128 : 64) && k >= (full ? 96 : 32)))
      return Kernel::tiles;
    if (pairs_available(precision)) return Kernel::pairs;
  }
  return Kernel::panels;
}

template <class Real>
void gemm(Factor<Real> a, Factor<Real> b, View<Real> c, Into into,
          Precision precision) {
  if (!begin_product(a, b, c, into)) return;
  if constexpr (std::is_same_v<Real, float>) {
    if (tiles_gain(c.rows(), c.cols(), a.cols(), precision)) {
      multiply_cutting_tiles(a, b, c, into, precision);
      return;
    }
    if (pairs_available(precision)) {
      multiply_cutting_pairs(a, b, c, into);
      return;
    }
  }
  gemm_on_this_thread(a, b, c, into);
}

template <class Real>
void RightFactor<Real>::Free::operator()(void* p) const {
  std::free(p);
}

template <class Real>
RightFactor<Real>::RightFactor(Factor<Real> b, Precision precision)
    : data_(b.matrix.data()),
      rows_(b.matrix.rows()),
      cols_(b.matrix.cols()),
      stride_(b.matrix.outerStride()),
      transposed_(b.transposed),
      precision_(precision) {
  const Index k = b.rows(), n = b.cols();
  if (k * n == 0) return;
  kernel_ = kernel_for<Real>(n, k, precision, true);
  if constexpr (std::is_same_v<Real, float>) {
    if (kernel_ == Kernel::tiles) {
      auto* to = aligned<std::uint16_t>(
          bf16_tiles::packed_size(k, n, parts_of(precision)));
      cut_.reset(to);
      bf16_tiles::pack(floats(b), k, n, parts_of(precision), to);
    } else if (kernel_ == Kernel::pairs) {
      auto* to = aligned<std::uint16_t>(bf16_pairs::packed_size(k, n));
      cut_.reset(to);
      bf16_pairs::pack(floats(b), k, n, to);
    }
  }
  if (kernel_ != Kernel::panels ||
      k * n * static_cast<Index>(sizeof(Real)) > most_kept)
    return;
  auto* to = aligned<Real>(panels::packed_size<Real>(k, n));
  cut_.reset(to);
  panels::pack(numbers(b), k, n, to);
}

template <class Real>
void gemm_columns(const Factor<Real>& a, const RightFactor<Real>& b,
                  Index first, View<Real> c, Into into) {
  const Factor<Real> whole = b.factor();
  const Index k = whole.rows(), n = whole.cols();
  if constexpr (std::is_same_v<Real, float>) {
    const auto* cut = static_cast<const std::uint16_t*>(b.cut());
    if (b.kernel() == Kernel::tiles) {
      multiply_by_tiles(a, {cut, k, n, parts_of(b.precision())}, first, c,
                        into);
      return;
    }
    if (b.kernel() == Kernel::pairs) {
      multiply_by_pairs(a, {cut, k, n}, first, c, into);
      return;
    }
  }
  if (b.cut() != nullptr)
    multiply_by_panels(a, static_cast<const Real*>(b.cut()), n, first, c, into);
  else
    multiply_cutting_panels(a, cols_of(whole, first, c.cols()), c, into);
}

template <class Real>
void gemm_cutting(const Factor<Real>& a, const Factor<Real>& b, View<Real> c,
                  Kernel kernel, Precision precision) {
  if constexpr (std::is_same_v<Real, float>) {
    if (kernel == Kernel::tiles) {
      multiply_cutting_tiles(a, b, c, Into::overwrite, precision);
      return;
    }
    if (kernel == Kernel::pairs) {
      multiply_cutting_pairs(a, b, c, Into::overwrite);
      return;
    }
  }
  multiply_cutting_panels(a, b, c, Into::overwrite);
}

template <class Real>
void gemm(Factor<Real> a, const RightFactor<Real>& b, View<Real> c, Into into) {
  if (begin_product(a, b.factor(), c, into)) gemm_columns(a, b, 0, c, into);
}

WithoutTiles::WithoutTiles() : before_(only_f32) { only_f32 = true; }
WithoutTiles::~WithoutTiles() { only_f32 = before_; }

template void gemm(Factor<float>, Factor<float>, View<float>, Into, Precision);
template void gemm(Factor<double>, Factor<double>, View<double>, Into,
                   Precision);
template class RightFactor<float>;
template class RightFactor<double>;
template void gemm(Factor<float>, const RightFactor<float>&, View<float>, Into);
template void gemm(Factor<double>, const RightFactor<double>&, View<double>,
                   Into);
template void gemm_columns(const Factor<float>&, const RightFactor<float>&,
                           Index, View<float>, Into);
template void gemm_columns(const Factor<double>&, const RightFactor<double>&,
                           Index, View<double>, Into);
template void gemm_cutting(const Factor<float>&, const Factor<float>&,
                           View<float>, Kernel, Precision);
template void gemm_cutting(const Factor<double>&, const Factor<double>&,
                           View<double>, Kernel, Precision);
template Kernel kernel_for<float>(Index, Index, Precision, bool);
template Kernel kernel_for<double>(Index, Index, Precision, bool);

}  // namespace lipscope
