#include "lipscope/transport/weighted_map.h"

#include <utility>

#include "lipscope/core/errors.h"

namespace lipscope {
namespace {

// D^{1/2} J D^{−1/2}, from D^{1/2}
template <class Real>
class WeightedOperator final : public LinearOperator<Real> {
 public:
  WeightedOperator(OperatorPtr<Real> j, const VectorOf<Real>& root)
      : j_(std::move(j)), root_(root) {}

  Index rows() const override { return j_->rows(); }
  Index cols() const override { return j_->cols(); }

  VectorOf<Real> apply(const VectorOf<Real>& v) const override {
    return times(root_, j_->apply(times(root_.cwiseInverse(), v)));
  }
  VectorOf<Real> apply_adjoint(const VectorOf<Real>& u) const override {
    return times(root_.cwiseInverse(), j_->apply_adjoint(times(root_, u)));
  }

 private:
  // one factor for each token of a flattened sequence
  static VectorOf<Real> times(const VectorOf<Real>& factor, VectorOf<Real> v) {
    View<Real> rows = unflatten(v, factor.size(), v.size() / factor.size());
    rows = factor.asDiagonal() * MatrixOf<Real>(rows);
    return v;
  }

  OperatorPtr<Real> j_;
  VectorOf<Real> root_;
};

template <class Real>
class WeightedMap final : public Map<Real> {
 public:
  WeightedMap(MapPtr<Real> f, const Vector& mass)
      : f_(std::move(f)), root_(mass.cwiseSqrt().cast<Real>()) {}

  MatrixOf<Real> operator()(const MatrixOf<Real>& z) const override {
    return root_.asDiagonal() * (*f_)(tokens(z));
  }
  OperatorPtr<Real> linearize(const MatrixOf<Real>& z) const override {
    return std::make_unique<WeightedOperator<Real>>(f_->linearize(tokens(z)),
                                                    root_);
  }

 private:
  MatrixOf<Real> tokens(const MatrixOf<Real>& z) const {
    require(z.rows() == root_.size(), "weighted: {} tokens for {} masses",
            z.rows(), root_.size());
    return root_.cwiseInverse().asDiagonal() * z;
  }

  MapPtr<Real> f_;
  VectorOf<Real> root_;  // √w
};

}  // namespace

template <class Real>
MapPtr<Real> weighted(MapPtr<Real> f, const Vector& mass) {
  require((mass.array() > 0.0).all(), "weighted: masses are positive");
  return std::make_unique<WeightedMap<Real>>(std::move(f), mass);
}

Matrix weighted_tokens(const Matrix& x, const Vector& mass) {
  return mass.cwiseSqrt().asDiagonal() * x;
}

Matrix unweighted_tokens(const Matrix& z, const Vector& mass) {
  return mass.cwiseSqrt().cwiseInverse().asDiagonal() * z;
}

template MapPtr<float> weighted(MapPtr<float>, const Vector&);
template MapPtr<double> weighted(MapPtr<double>, const Vector&);

}  // namespace lipscope
