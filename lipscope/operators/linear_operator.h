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
};

/// A as a dense matrix, by cols() applications. For tests and small problems.
template <class Real>
MatrixOf<Real> materialize(const LinearOperator<Real>& a);

}  // namespace lipscope
