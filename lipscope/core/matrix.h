#pragma once

#include <Eigen/Core>
#include <cstdint>

/// The one convention of the whole program: matrices are row-major, a token is
/// a row, weights act from the right (x W), and to flatten a sequence is to lay
/// its rows end to end.
namespace lipscope {

using Index = Eigen::Index;

template <class Real>
using MatrixOf =
    Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class Real>
using VectorOf = Eigen::Matrix<Real, Eigen::Dynamic, 1>;

using Matrix = MatrixOf<double>;
using Vector = VectorOf<double>;

/// A rectangle of a row-major matrix, which must outlive the view: rows of
/// equal stride.
template <class Real>
using View = Eigen::Map<MatrixOf<Real>, Eigen::Unaligned, Eigen::OuterStride<>>;
template <class Real>
using ConstView =
    Eigen::Map<const MatrixOf<Real>, Eigen::Unaligned, Eigen::OuterStride<>>;

/// The whole of m, without a copy; m must outlive it.
template <class Real>
View<Real> view(MatrixOf<Real>& m) {
  return {m.data(), m.rows(), m.cols(), Eigen::OuterStride<>(m.cols())};
}
template <class Real>
ConstView<Real> view(const MatrixOf<Real>& m) {
  return {m.data(), m.rows(), m.cols(), Eigen::OuterStride<>(m.cols())};
}

/// Where a rectangle stands in its matrix.
struct Rectangle {
  Index row = 0, col = 0, rows = 0, cols = 0;
};

/// That rectangle of m, without a copy; m must outlive it.
template <class Real>
View<Real> view(MatrixOf<Real>& m, Rectangle at) {
  return {m.data() + at.row * m.cols() + at.col, at.rows, at.cols,
          Eigen::OuterStride<>(m.cols())};
}
template <class Real>
ConstView<Real> view(const MatrixOf<Real>& m, Rectangle at) {
  return {m.data() + at.row * m.cols() + at.col, at.rows, at.cols,
          Eigen::OuterStride<>(m.cols())};
}

/// The same of a view.
template <class Real>
ConstView<Real> view(const ConstView<Real>& m, Rectangle at) {
  return {m.data() + at.row * m.outerStride() + at.col, at.rows, at.cols,
          Eigen::OuterStride<>(m.outerStride())};
}
template <class Real>
View<Real> view(View<Real>& m, Rectangle at) {
  return {m.data() + at.row * m.outerStride() + at.col, at.rows, at.cols,
          Eigen::OuterStride<>(m.outerStride())};
}

/// The rows of m end to end.
template <class Real>
VectorOf<Real> flatten(const MatrixOf<Real>& m) {
  return Eigen::Map<const VectorOf<Real>>(m.data(), m.size());
}

/// The flattened sequence v seen as [rows×cols], without a copy, to read or to
/// write through; v must outlive it.
template <class Real>
ConstView<Real> unflatten(const VectorOf<Real>& v, Index rows, Index cols) {
  return {v.data(), rows, cols, Eigen::OuterStride<>(cols)};
}

template <class Real>
View<Real> unflatten(VectorOf<Real>& v, Index rows, Index cols) {
  return {v.data(), rows, cols, Eigen::OuterStride<>(cols)};
}

}  // namespace lipscope
