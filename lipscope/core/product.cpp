#include <algorithm>
#include <vector>

#include "lipscope/core/gemm.h"
#include "lipscope/core/gemm_parts.h"
#include "lipscope/core/parallel.h"

namespace lipscope {
namespace {

// As few tiles of at most so many rows and columns as there must be, of nearly
// equal size; their columns begin at multiples of 48.
struct Tiling {
  Index down, across, rows, cols;

  Tiling(Index height, Index width, Index most_rows, Index most_cols) {
    const auto pieces = [](Index size, Index most) {
      return std::max<Index>(1, (size + most - 1) / most);
    };
    rows = (height + pieces(height, most_rows) - 1) / pieces(height, most_rows);
    cols = (width + pieces(width, most_cols) - 1) / pieces(width, most_cols);
    cols = (cols + 47) / 48 * 48;
    down = pieces(height, std::max<Index>(1, rows));
    across = pieces(width, std::max<Index>(1, cols));
  }

  Index count() const { return down * across; }
  Rectangle of(Index tile, Index height, Index width) const {
    const Index i = tile / across * rows, j = tile % across * cols;
    return {i, j, std::min(rows, height - i), std::min(cols, width - j)};
  }
};

}  // namespace

namespace {

// Sums longer than four such pieces are cut into pieces, which are added in
// their order: where there are few numbers, pieces are made side by side.
constexpr Index long_sum = 512;

template <class Real>
void product_of_long_sums(const Factor<Real>& a, const Factor<Real>& b,
                          View<Real> c, int threads, Kernel kernel,
                          Precision precision) {
  const Index pieces = (a.cols() + long_sum - 1) / long_sum;
  const auto make = [&](Index i, const Rectangle& at, View<Real> to) {
    const Index begin = i * long_sum;
    const Index count = std::min(long_sum, a.cols() - begin);
    gemm_cutting(rows_of(cols_of(a, begin, count), at.row, at.rows),
                 cols_of(rows_of(b, begin, count), at.col, at.cols), to, kernel,
                 precision);
  };
  const Tiling tiling(c.rows(), c.cols(), 256, 384);
  if (tiling.count() < 4) {
    const Rectangle whole{0, 0, c.rows(), c.cols()};
    std::vector<MatrixOf<Real>> sums(pieces);
    parallel_for(pieces, threads, [&](Index i) {
      sums[i].resize(c.rows(), c.cols());
      make(i, whole, view(sums[i]));
    });
    parallel_for(c.rows(), threads, [&](Index row) {
      c.row(row) = sums[0].row(row);
      for (Index i = 1; i < pieces; ++i) c.row(row) += sums[i].row(row);
    });
    return;
  }
  parallel_for(tiling.count(), threads, [&](Index tile) {
    const Rectangle at = tiling.of(tile, c.rows(), c.cols());
    View<Real> part = view(c, at);
    MatrixOf<Real> sum(at.rows, at.cols);
    make(0, at, part);
    for (Index i = 1; i < pieces; ++i) {
      make(i, at, view(sum));
      part += sum;
    }
  });
}

}  // namespace

template <class Real>
void product_into(Factor<Real> a, Factor<Real> b, View<Real> c, int threads,
                  Precision precision) {
  if (!begin_product(a, b, c, Into::overwrite)) return;
  const Kernel kernel = kernel_for<Real>(b.cols(), b.rows(), precision, false);
  if (a.cols() >= 4 * long_sum) {
    product_of_long_sums(a, b, c, threads, kernel, precision);
    return;
  }
  const Tiling tiling(c.rows(), c.cols(), 256, 384);
  parallel_for(tiling.count(), threads, [&](Index tile) {
    const Rectangle at = tiling.of(tile, c.rows(), c.cols());
    gemm_cutting(rows_of(a, at.row, at.rows), cols_of(b, at.col, at.cols),
                 view(c, at), kernel, precision);
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
    const Rectangle at = tiling.of(tile, c.rows(), c.cols());
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
