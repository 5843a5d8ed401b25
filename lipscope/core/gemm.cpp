#include "lipscope/core/gemm.h"

#include <dnnl.h>

#include <algorithm>

#include "lipscope/core/errors.h"
#include "lipscope/core/parallel.h"

namespace lipscope {
namespace {

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

}  // namespace

template <class Real>
void gemm(Factor<Real> a, Factor<Real> b, View<Real> c, Into into) {
  require(a.cols() == b.rows() && c.rows() == a.rows() && c.cols() == b.cols(),
          "gemm: [{}x{}] [{}x{}] does not make [{}x{}]", a.rows(), a.cols(),
          b.rows(), b.cols(), c.rows(), c.cols());
  if (c.size() == 0) return;
  if (a.cols() == 0) {
    if (into == Into::overwrite) c.setZero();
    return;
  }
  gemm_on_this_thread(a, b, c, into);
}

template <class Real>
void product_into(Factor<Real> a, Factor<Real> b, View<Real> c, int threads) {
  require(c.rows() == a.rows() && c.cols() == b.cols(),
          "product: [{}x{}] [{}x{}] does not make [{}x{}]", a.rows(), a.cols(),
          b.rows(), b.cols(), c.rows(), c.cols());
  // as few tiles of at most 256×384 as there must be, of nearly equal size
  const auto pieces = [](Index size, Index most) {
    return std::max<Index>(1, (size + most - 1) / most);
  };
  const Index down = pieces(a.rows(), 256), across = pieces(b.cols(), 384);
  const Index tile_rows = (a.rows() + down - 1) / down;
  const Index tile_cols = (b.cols() + across - 1) / across;
  parallel_for(down * across, threads, [&](Index tile) {
    const Index i = tile / across * tile_rows, j = tile % across * tile_cols;
    const Index rows = std::min(tile_rows, a.rows() - i);
    const Index cols = std::min(tile_cols, b.cols() - j);
    gemm(rows_of(a, i, rows), cols_of(b, j, cols),
         View<Real>(c.data() + i * c.outerStride() + j, rows, cols,
                    Eigen::OuterStride<>(c.outerStride())));
  });
}

template <class Real>
MatrixOf<Real> product(Factor<Real> a, Factor<Real> b, int threads) {
  MatrixOf<Real> c(a.rows(), b.cols());
  product_into(a, b, view(c), threads);
  return c;
}

template void gemm(Factor<float>, Factor<float>, View<float>, Into);
template void gemm(Factor<double>, Factor<double>, View<double>, Into);
template void product_into(Factor<float>, Factor<float>, View<float>, int);
template void product_into(Factor<double>, Factor<double>, View<double>, int);
template MatrixOf<float> product(Factor<float>, Factor<float>, int);
template MatrixOf<double> product(Factor<double>, Factor<double>, int);

}  // namespace lipscope
