#pragma once

#include "lipscope/core/matrix.h"

namespace lipscope {

/// A factor of a product, as it stands or transposed.
template <class Real>
struct Factor {
  ConstView<Real> matrix;
  bool transposed = false;

  Index rows() const { return transposed ? matrix.cols() : matrix.rows(); }
  Index cols() const { return transposed ? matrix.rows() : matrix.cols(); }
};

template <class Real>
Factor<Real> as_is(ConstView<Real> m) {
  return {m, false};
}
template <class Real>
Factor<Real> as_is(const MatrixOf<Real>& m) {
  return {view(m), false};
}
template <class Real>
Factor<Real> transposed(ConstView<Real> m) {
  return {m, true};
}
template <class Real>
Factor<Real> transposed(const MatrixOf<Real>& m) {
  return {view(m), true};
}

/// C ← A B, or C ← C + A B, on the calling thread alone: through oneDNN for
/// float, through Eigen for double. C must not overlap A or B.
enum class Into { overwrite, add };
template <class Real>
void gemm(Factor<Real> a, Factor<Real> b, View<Real> c,
          Into into = Into::overwrite);

/// A B in tiles of a fixed size, each made by one thread: the same bits for any
/// number of threads.
template <class Real>
MatrixOf<Real> product(Factor<Real> a, Factor<Real> b, int threads);

/// The same, written into C (overwriting it).
template <class Real>
void product_into(Factor<Real> a, Factor<Real> b, View<Real> c, int threads);

}  // namespace lipscope
