#include "lipscope/core/gemm.h"

#include <dnnl.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <type_traits>
#include <vector>

#include "lipscope/core/bf16_tiles.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/parallel.h"

namespace lipscope {
namespace {

// ---- by tiles

// rows and columns of a right factor that are cut at a time
constexpr Index deepest = 384, widest = 1024;

bf16_tiles::Parts parts_of(Precision precision) {
  return precision == Precision::full ? bf16_tiles::Parts::three
                                      : bf16_tiles::Parts::two;
}

bf16_tiles::Floats floats(const Factor<float>& f) {
  return {f.matrix.data(), f.matrix.outerStride(), f.transposed};
}

std::uint16_t* aligned_numbers(Index count) {
  void* p = std::aligned_alloc(
      64, static_cast<std::size_t>(count) * sizeof(std::uint16_t));
  if (p == nullptr) throw std::bad_alloc();
  return static_cast<std::uint16_t*>(p);
}

// A right factor that is cut for one product, in memory that serves again.
bf16_tiles::Packed cut_for_now(const Factor<float>& b, Precision precision) {
  thread_local std::unique_ptr<std::uint16_t, decltype(&std::free)> buffer{
      nullptr, &std::free};
  thread_local Index room = 0;
  const Index size =
      bf16_tiles::packed_size(b.rows(), b.cols(), parts_of(precision));
  if (size > room) {
    buffer.reset(aligned_numbers(size));
    room = size;
  }
  bf16_tiles::pack(floats(b), b.rows(), b.cols(), parts_of(precision),
                   buffer.get());
  return {buffer.get(), b.rows(), b.cols(), parts_of(precision)};
}

// Whether tiles gain: a number that is cut must serve in enough products.
// Measured: at 3 parts they gain 1.1 at [98×384] and lose below.
bool tiles_gain(Index m, Index n, Index k, Precision precision, bool cut) {
  if (!bf16_tiles::available()) return false;
  const bool full = precision == Precision::full;
  if (cut) return m >= 8 && n >= 48 && k >= 48;
  return k >= (full ? 96 : 32) && m * n >= (full ? 72 : 36) * (m + n);
}

void multiply_by_tiles(const Factor<float>& a, const bf16_tiles::Packed& b,
                       Index first, View<float>& c, Into into) {
  bf16_tiles::multiply(floats(a), b, first, c.cols(), c.data(), c.outerStride(),
                       c.rows(), into == Into::add);
}

// ---- by libraries

void gemm_on_this_thread(const Factor<float>& a, const Factor<float>& b,
                         View<float>& c, Into into) {
  const OneThread guard;
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

// the part of a factor that makes rows (or columns) [begin, begin + count) of
// the product
template <class Real>
Factor<Real> rows_of(const Factor<Real>& f, Index begin, Index count) {
  const auto& m = f.matrix;
  const Eigen::OuterStride<> stride(m.outerStride());
  if (f.transposed)
    return {ConstView<Real>(m.data() + begin, m.rows(), count, stride), true};
  return {ConstView<Real>(m.data() + begin * m.outerStride(), count, m.cols(),
                          stride),
          false};
}

template <class Real>
Factor<Real> cols_of(const Factor<Real>& f, Index begin, Index count) {
  Factor<Real> flipped =
      rows_of(Factor<Real>{f.matrix, !f.transposed}, begin, count);
  flipped.transposed = f.transposed;
  return flipped;
}

// whether there is something to multiply; without, C is done
template <class Real>
bool begin_product(const Factor<Real>& a, const Factor<Real>& b, View<Real>& c,
                   Into into) {
  require(a.cols() == b.rows() && c.rows() == a.rows() && c.cols() == b.cols(),
          "gemm: [{}x{}] [{}x{}] does not make [{}x{}]", a.rows(), a.cols(),
          b.rows(), b.cols(), c.rows(), c.cols());
  if (c.size() == 0) return false;
  if (a.cols() > 0) return true;
  if (into == Into::overwrite) c.setZero();
  return false;
}

}  // namespace

template <class Real>
void gemm(Factor<Real> a, Factor<Real> b, View<Real> c, Into into,
          Precision precision) {
  if (!begin_product(a, b, c, into)) return;
  if constexpr (std::is_same_v<Real, float>) {
    if (tiles_gain(c.rows(), c.cols(), a.cols(), precision, false)) {
      // piece by piece of B, each small enough to stay in cache
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
      return;
    }
  }
  gemm_on_this_thread(a, b, c, into);
}

template <class Real>
void RightFactor<Real>::Free::operator()(std::uint16_t* p) const {
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
  if constexpr (std::is_same_v<Real, float>) {
    if (!tiles_gain(64, b.cols(), b.rows(), precision, true)) return;
    tiles_.reset(aligned_numbers(
        bf16_tiles::packed_size(b.rows(), b.cols(), parts_of(precision))));
    bf16_tiles::pack(floats(b), b.rows(), b.cols(), parts_of(precision),
                     tiles_.get());
  }
}

namespace {

// columns [first, first + c.cols()) of A B
template <class Real>
void gemm_columns(const Factor<Real>& a, const RightFactor<Real>& b,
                  Index first, View<Real> c, Into into) {
  if constexpr (std::is_same_v<Real, float>) {
    if (b.tiles() != nullptr && tiles_gain(c.rows(), b.factor().cols(),
                                           a.cols(), b.precision(), true)) {
      multiply_by_tiles(a,
                        {b.tiles(), b.factor().rows(), b.factor().cols(),
                         parts_of(b.precision())},
                        first, c, into);
      return;
    }
  }
  gemm_on_this_thread(a, cols_of(b.factor(), first, c.cols()), c, into);
}

}  // namespace

template <class Real>
void gemm(Factor<Real> a, const RightFactor<Real>& b, View<Real> c, Into into) {
  if (begin_product(a, b.factor(), c, into)) gemm_columns(a, b, 0, c, into);
}

namespace {

// Few numbers, each a long sum: the sums are cut into fixed pieces, made side
// by side and added in their order.
constexpr Index long_sum = 512;

template <class Real>
void product_of_long_sums(const Factor<Real>& a, const Factor<Real>& b,
                          View<Real> c, int threads, Precision precision) {
  const Index pieces = (a.cols() + long_sum - 1) / long_sum;
  std::vector<MatrixOf<Real>> sums(pieces);
  parallel_for(pieces, threads, [&](Index i) {
    const Index begin = i * long_sum;
    const Index count = std::min(long_sum, a.cols() - begin);
    sums[i].resize(c.rows(), c.cols());
    gemm(cols_of(a, begin, count), rows_of(b, begin, count), view(sums[i]),
         Into::overwrite, precision);
  });
  parallel_for(c.rows(), threads, [&](Index row) {
    c.row(row) = sums[0].row(row);
    for (Index i = 1; i < pieces; ++i) c.row(row) += sums[i].row(row);
  });
}

}  // namespace

namespace {

// As few tiles of at most so many rows and columns as there must be, of nearly
// equal size; their columns begin at multiples of 16.
struct Tiling {
  Index down, across, rows, cols;

  Tiling(Index height, Index width, Index most_rows, Index most_cols) {
    const auto pieces = [](Index size, Index most) {
      return std::max<Index>(1, (size + most - 1) / most);
    };
    rows = (height + pieces(height, most_rows) - 1) / pieces(height, most_rows);
    cols = (width + pieces(width, most_cols) - 1) / pieces(width, most_cols);
    cols = (cols + 15) / 16 * 16;
    down = pieces(height, std::max<Index>(1, rows));
    across = pieces(width, std::max<Index>(1, cols));
  }

  Index count() const { return down * across; }
  Block of(Index tile, Index height, Index width) const {
    const Index i = tile / across * rows, j = tile % across * cols;
    return {i, j, std::min(rows, height - i), std::min(cols, width - j)};
  }
};

}  // namespace

template <class Real>
void product_into(Factor<Real> a, Factor<Real> b, View<Real> c, int threads,
                  Precision precision) {
  if (!begin_product(a, b, c, Into::overwrite)) return;
  const Tiling tiling(c.rows(), c.cols(), 256, 384);
  if (tiling.count() < 4 && a.cols() >= 4 * long_sum) {
    product_of_long_sums(a, b, c, threads, precision);
    return;
  }
  parallel_for(tiling.count(), threads, [&](Index tile) {
    const Block at = tiling.of(tile, c.rows(), c.cols());
    gemm(rows_of(a, at.row, at.rows), cols_of(b, at.col, at.cols), view(c, at),
         Into::overwrite, precision);
  });
}

template <class Real>
void product_into(Factor<Real> a, const RightFactor<Real>& b, View<Real> c,
                  int threads) {
  if (!begin_product(a, b.factor(), c, Into::overwrite)) return;
  // many rows: wide tiles, as every tile cuts its own rows of A
  const Tiling tiling = c.rows() >= 512 ? Tiling(c.rows(), c.cols(), 128, 4096)
                                        : Tiling(c.rows(), c.cols(), 256, 384);
  parallel_for(tiling.count(), threads, [&](Index tile) {
    const Block at = tiling.of(tile, c.rows(), c.cols());
    gemm_columns(rows_of(a, at.row, at.rows), b, at.col, view(c, at),
                 Into::overwrite);
  });
}

template <class Real>
MatrixOf<Real> product(Factor<Real> a, const RightFactor<Real>& b,
                       int threads) {
  MatrixOf<Real> c(a.rows(), b.factor().cols());
  product_into(a, b, view(c), threads);
  return c;
}

template <class Real>
MatrixOf<Real> product(Factor<Real> a, Factor<Real> b, int threads) {
  MatrixOf<Real> c(a.rows(), b.cols());
  product_into(a, b, view(c), threads);
  return c;
}

template void gemm(Factor<float>, Factor<float>, View<float>, Into, Precision);
template void gemm(Factor<double>, Factor<double>, View<double>, Into,
                   Precision);
template class RightFactor<float>;
template class RightFactor<double>;
template void gemm(Factor<float>, const RightFactor<float>&, View<float>, Into);
template void gemm(Factor<double>, const RightFactor<double>&, View<double>,
                   Into);
template void product_into(Factor<float>, Factor<float>, View<float>, int,
                           Precision);
template void product_into(Factor<double>, Factor<double>, View<double>, int,
                           Precision);
template void product_into(Factor<float>, const RightFactor<float>&,
                           View<float>, int);
template void product_into(Factor<double>, const RightFactor<double>&,
                           View<double>, int);
template MatrixOf<float> product(Factor<float>, const RightFactor<float>&, int);
template MatrixOf<double> product(Factor<double>, const RightFactor<double>&,
                                  int);
template MatrixOf<float> product(Factor<float>, Factor<float>, int);
template MatrixOf<double> product(Factor<double>, Factor<double>, int);

}  // namespace lipscope
