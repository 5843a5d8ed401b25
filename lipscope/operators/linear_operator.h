#pragma once

#include "lipscope/core/matrix.h"

namespace lipscope {

/// A linear map A : R^cols → R^rows, known only by what it does to vectors.
///
/// apply and apply_adjoint keep no state: they may be called from several
/// threads at once.
template <class Real>
class LinearOperator {
 public:
  virtual ~LinearOperator() = default;

  virtual Index rows() const = 0;
  virtual Index cols() const = 0;

  virtual VectorOf<Real> apply(const VectorOf<Real>& v) const = 0;  ///< A v
  virtual VectorOf<Real> apply_adjoint(
      const VectorOf<Real>& u) const = 0;  ///< Aᵀ u

  /// A unit direction that A is likely to stretch much, from what it knows of
  /// itself; empty if it knows nothing. For an operator of several blocks, one
  /// for each, end to end. Where a search may start, never a statement.
  virtual VectorOf<Real> likely_direction() const { return {}; }
};

/// A as a dense matrix, by cols() applications. For tests and small problems.
template <class Real>
MatrixOf<Real> materialize(const LinearOperator<Real>& a);

}  // namespace lipscope
