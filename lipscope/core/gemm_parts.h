#pragma once

#include <algorithm>

#include "lipscope/core/errors.h"
#include "lipscope/core/gemm.h"

/// What gemm.cpp and product.cpp share, and the Jacobian of attention, which
/// makes the columns of one head; nobody else includes it.
namespace lipscope {

/// The rows (or columns) [begin, begin + count) of a factor.
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

/// Whether there is something to multiply; without, C is done.
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

/// What makes the rows of a product: by the right factor [k×n] alone, which is
/// cut beforehand, or for one product that is taken to have many rows.
template <class Real>
Kernel kernel_for(Index n, Index k, Precision precision, bool beforehand);

/// Columns [first, first + c.cols()) of A B; first is a multiple of 48.
template <class Real>
void gemm_columns(const Factor<Real>& a, const RightFactor<Real>& b,
                  Index first, View<Real> c, Into into);

/// C ← A B by a B that is cut for it.
template <class Real>
void gemm_cutting(const Factor<Real>& a, const Factor<Real>& b, View<Real> c,
                  Kernel kernel, Precision precision);

}  // namespace lipscope
