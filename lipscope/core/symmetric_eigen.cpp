#include "lipscope/core/symmetric_eigen.h"

#include <Eigen/Eigenvalues>

namespace lipscope {

SymmetricEigen symmetric_eigen(const Matrix& a) {
  const Eigen::SelfAdjointEigenSolver<Matrix> eigen(a);
  return {.values = eigen.eigenvalues(),
          .vectors = eigen.eigenvectors(),
          .converged = eigen.info() == Eigen::Success};
}

Vector symmetric_eigenvalues(const Matrix& a) {
  return Eigen::SelfAdjointEigenSolver<Matrix>(a, Eigen::EigenvaluesOnly)
      .eigenvalues();
}

}  // namespace lipscope
