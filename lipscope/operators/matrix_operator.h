#pragma once

#include "lipscope/operators/linear_operator.h"

namespace lipscope {

/// Somebody else's matrix in memory: entry (i, j) is data[i·down + j·right].
template <class Stored>
struct StridedMatrix {
  const Stored* data = nullptr;
  Index rows = 0, cols = 0;
  Index down = 0, right = 1;
};

/// A matrix as an operator, without a copy: entries are read in the precision
/// they are stored in and multiplied in Real. A matrix that lies row by row or
/// column by column is read at the speed of the memory.
///
/// Products are divided into pieces that depend on the shape alone: they have
/// the same bits on any number of threads.
template <class Stored, class Real>
class MatrixOperator final : public LinearOperator<Real> {
 public:
  /// Borrows the numbers. threads: 0 for all cores.
  explicit MatrixOperator(StridedMatrix<Stored> matrix, int threads = 0);

  Index rows() const override { return matrix_.rows; }
  Index cols() const override { return matrix_.cols; }
  VectorOf<Real> apply(const VectorOf<Real>& v) const override;
  VectorOf<Real> apply_adjoint(const VectorOf<Real>& u) const override;

 private:
  StridedMatrix<Stored> matrix_;
  int threads_;
};

}  // namespace lipscope
