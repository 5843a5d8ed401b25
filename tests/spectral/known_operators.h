#pragma once

#include <Eigen/QR>
#include <memory>
#include <utility>

#include "lipscope/core/rng.h"
#include "lipscope/operators/map.h"

/// Operators and maps whose singular values are known because they were put
/// there.
namespace lipscope::test {

template <class Real>
class DenseOperator final : public LinearOperator<Real> {
 public:
  explicit DenseOperator(MatrixOf<Real> a) : a_(std::move(a)) {}

  Index rows() const override { return a_.rows(); }
  Index cols() const override { return a_.cols(); }
  VectorOf<Real> apply(const VectorOf<Real>& v) const override {
    return a_ * v;
  }
  VectorOf<Real> apply_adjoint(const VectorOf<Real>& u) const override {
    return a_.transpose() * u;
  }

 private:
  MatrixOf<Real> a_;
};

/// diag(s): as good as any operator with these singular values when the start
/// is uniformly random, since then no basis is special.
template <class Real>
class DiagonalOperator final : public LinearOperator<Real> {
 public:
  explicit DiagonalOperator(const Vector& s) : s_(s.cast<Real>()) {}

  Index rows() const override { return s_.size(); }
  Index cols() const override { return s_.size(); }
  VectorOf<Real> apply(const VectorOf<Real>& v) const override {
    return s_.cwiseProduct(v);
  }
  VectorOf<Real> apply_adjoint(const VectorOf<Real>& u) const override {
    return s_.cwiseProduct(u);
  }

 private:
  VectorOf<Real> s_;
};

/// x ↦ A vec(x), as a sequence of the same shape; block-diagonal A for batches.
template <class Real>
class LinearMap final : public Map<Real> {
 public:
  explicit LinearMap(MatrixOf<Real> a) : a_(std::move(a)) {}

  MatrixOf<Real> operator()(const MatrixOf<Real>& x) const override {
    const VectorOf<Real> y = a_ * flatten(x);
    return unflatten(y, x.rows(), x.cols());
  }
  std::unique_ptr<LinearOperator<Real>> linearize(
      const MatrixOf<Real>&) const override {
    return std::make_unique<DenseOperator<Real>>(a_);
  }

 private:
  MatrixOf<Real> a_;
};

/// Orthonormal columns, uniformly random.
inline Matrix orthonormal(Index rows, Index cols, Rng rng) {
  const Eigen::HouseholderQR<Matrix> qr(gaussian(rows, cols, rng));
  return qr.householderQ() * Matrix::Identity(rows, cols);
}

/// A [rows×cols] matrix Q₁ diag(s) Q₂ᵀ with random Q₁, Q₂ of orthonormal
/// columns.
inline Matrix with_singular_values(Index rows, Index cols, const Vector& s) {
  return orthonormal(rows, s.size(), Rng(71)) * s.asDiagonal() *
         orthonormal(cols, s.size(), Rng(72)).transpose();
}

}  // namespace lipscope::test
