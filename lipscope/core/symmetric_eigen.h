#pragma once

#include "lipscope/core/matrix.h"

namespace lipscope {

/// A symmetric matrix as Q diag(values) Qᵀ, from the least value to the
/// largest.
struct SymmetricEigen {
  Vector values;
  Matrix vectors;         ///< Q: the vector of values[i] is its column i
  bool converged = true;  ///< false: neither is to be used
};

/// All eigenvalues and unit eigenvectors of a symmetric matrix, whose lower
/// triangle alone is read; by Eigen, which is compiled for it here and nowhere
/// else.
SymmetricEigen symmetric_eigen(const Matrix& a);

/// The eigenvalues alone, from the least to the largest: cheaper.
Vector symmetric_eigenvalues(const Matrix& a);

}  // namespace lipscope
