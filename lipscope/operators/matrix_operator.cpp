#include "lipscope/operators/matrix_operator.h"

#include <algorithm>
#include <array>
#include <vector>

#include "lipscope/core/errors.h"
#include "lipscope/core/parallel.h"

namespace lipscope {
namespace {

// entries of a piece of work: enough to be worth a thread
constexpr Index piece_entries = Index{1} << 18;
// partial sums of Aᵀu that are kept beside each other
constexpr Index most_pieces = 32;

struct Pieces {
  Index rows, count;  // of each piece; how many
};

Pieces pieces_of(Index rows, Index cols) {
  const Index least =
      std::max<Index>(1, piece_entries / std::max<Index>(1, cols));
  const Index each = std::max(least, (rows + most_pieces - 1) / most_pieces);
  return {each, (rows + each - 1) / each};
}

// Σ_j a_j v_j in sixteen sums side by side: a fixed order of additions. Step is
// the distance of two entries, known to the compiler where it is 1.
template <class Stored, class Real>
Real dot(const Stored* a, Index step, const Real* v, Index size) {
  constexpr Index lanes = 16;
  std::array<Real, lanes> sums{};
  Index j = 0;
  if (step == 1) {
    for (; j + lanes <= size; j += lanes)
      for (Index k = 0; k < lanes; ++k)
        sums[k] += static_cast<Real>(a[j + k]) * v[j + k];
  } else {
    for (; j + lanes <= size; j += lanes)
      for (Index k = 0; k < lanes; ++k)
        sums[k] += static_cast<Real>(a[(j + k) * step]) * v[j + k];
  }
  Real sum{};
  for (; j < size; ++j) sum += static_cast<Real>(a[j * step]) * v[j];
  for (const Real s : sums) sum += s;
  return sum;
}

// A v where the entries of a row are nearer to each other than the rows
template <class Stored, class Real>
VectorOf<Real> by_rows(const StridedMatrix<Stored>& a, const VectorOf<Real>& v,
                       int threads) {
  VectorOf<Real> product(a.rows);
  const Pieces pieces = pieces_of(a.rows, a.cols);
  parallel_for(pieces.count, threads, [&](Index p) {
    const Index end = std::min(a.rows, (p + 1) * pieces.rows);
    for (Index i = p * pieces.rows; i < end; ++i)
      product[i] = dot(a.data + i * a.down, a.right, v.data(), a.cols);
  });
  return product;
}

// Aᵀu of the same matrix: each piece of rows has a sum of its own, and these
// are added in order
template <class Stored, class Real>
VectorOf<Real> by_rows_adjoint(const StridedMatrix<Stored>& a,
                               const VectorOf<Real>& u, int threads) {
  const Pieces pieces = pieces_of(a.rows, a.cols);
  std::vector<VectorOf<Real>> sums(pieces.count);
  parallel_for(pieces.count, threads, [&](Index p) {
    sums[p] = VectorOf<Real>::Zero(a.cols);
    Real* sum = sums[p].data();
    const Index end = std::min(a.rows, (p + 1) * pieces.rows);
    Index i = p * pieces.rows;
    if (a.right == 1) {
      // four rows at a time: the sum is read and written a quarter as often
      for (; i + 4 <= end; i += 4) {
        const Stored *r0 = a.data + i * a.down, *r1 = r0 + a.down,
                     *r2 = r1 + a.down, *r3 = r2 + a.down;
        const Real u0 = u[i], u1 = u[i + 1], u2 = u[i + 2], u3 = u[i + 3];
        for (Index j = 0; j < a.cols; ++j)
          sum[j] +=
              u0 * static_cast<Real>(r0[j]) + u1 * static_cast<Real>(r1[j]) +
              u2 * static_cast<Real>(r2[j]) + u3 * static_cast<Real>(r3[j]);
      }
    }
    for (; i < end; ++i)
      for (Index j = 0; j < a.cols; ++j)
        sum[j] += u[i] * static_cast<Real>(a.data[i * a.down + j * a.right]);
  });
  VectorOf<Real> product = sums.front();
  for (Index p = 1; p < pieces.count; ++p) product += sums[p];
  return product;
}

template <class Stored>
StridedMatrix<Stored> transposed(const StridedMatrix<Stored>& a) {
  return {a.data, a.cols, a.rows, a.right, a.down};
}

template <class Stored>
bool lies_by_columns(const StridedMatrix<Stored>& a) {
  return std::abs(a.down) < std::abs(a.right);
}

}  // namespace

template <class Stored, class Real>
MatrixOperator<Stored, Real>::MatrixOperator(StridedMatrix<Stored> matrix,
                                             int threads)
    : matrix_(matrix), threads_(threads) {
  require(matrix.rows > 0 && matrix.cols > 0,
          "matrix_operator: a [{}x{}] matrix", matrix.rows, matrix.cols);
}

template <class Stored, class Real>
VectorOf<Real> MatrixOperator<Stored, Real>::apply(
    const VectorOf<Real>& v) const {
  require(v.size() == cols(), "matrix_operator: {} numbers for {} columns",
          v.size(), cols());
  return lies_by_columns(matrix_)
             ? by_rows_adjoint(transposed(matrix_), v, threads_)
             : by_rows(matrix_, v, threads_);
}

template <class Stored, class Real>
VectorOf<Real> MatrixOperator<Stored, Real>::apply_adjoint(
    const VectorOf<Real>& u) const {
  require(u.size() == rows(), "matrix_operator: {} numbers for {} rows",
          u.size(), rows());
  return lies_by_columns(matrix_) ? by_rows(transposed(matrix_), u, threads_)
                                  : by_rows_adjoint(matrix_, u, threads_);
}

template class MatrixOperator<float, float>;
template class MatrixOperator<float, double>;
template class MatrixOperator<double, double>;

}  // namespace lipscope
