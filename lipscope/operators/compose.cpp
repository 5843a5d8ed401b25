#include "lipscope/operators/compose.h"

#include <utility>

#include "lipscope/core/errors.h"

namespace lipscope {
namespace {

// ---- operators

template <class Real>
class Product final : public LinearOperator<Real> {
 public:
  Product(OperatorPtr<Real> outer, OperatorPtr<Real> inner)
      : outer_(std::move(outer)), inner_(std::move(inner)) {
    require(outer_->cols() == inner_->rows(),
            "compose: the outer operator reads {} numbers, the inner gives {}",
            outer_->cols(), inner_->rows());
  }

  Index rows() const override { return outer_->rows(); }
  Index cols() const override { return inner_->cols(); }

  VectorOf<Real> apply(const VectorOf<Real>& v) const override {
    return outer_->apply(inner_->apply(v));
  }
  VectorOf<Real> apply_adjoint(const VectorOf<Real>& u) const override {
    return inner_->apply_adjoint(outer_->apply_adjoint(u));
  }

 private:
  OperatorPtr<Real> outer_, inner_;
};

template <class Real>
class IdentityPlus final : public LinearOperator<Real> {
 public:
  IdentityPlus(OperatorPtr<Real> a, Real carry)
      : a_(std::move(a)), carry_(carry) {
    require(a_->rows() == a_->cols(),
            "residual: the operator takes {} numbers to {}, not to as many",
            a_->cols(), a_->rows());
  }

  Index rows() const override { return a_->rows(); }
  Index cols() const override { return a_->cols(); }

  VectorOf<Real> apply(const VectorOf<Real>& v) const override {
    return carry_ * v + a_->apply(v);
  }
  VectorOf<Real> apply_adjoint(const VectorOf<Real>& u) const override {
    return carry_ * u + a_->apply_adjoint(u);
  }

 private:
  OperatorPtr<Real> a_;
  Real carry_;
};

template <class Real>
class Sum final : public LinearOperator<Real> {
 public:
  Sum(OperatorPtr<Real> a, OperatorPtr<Real> b)
      : a_(std::move(a)), b_(std::move(b)) {
    require(a_->rows() == b_->rows() && a_->cols() == b_->cols(),
            "sum: [{}x{}] and [{}x{}] do not add", a_->rows(), a_->cols(),
            b_->rows(), b_->cols());
  }

  Index rows() const override { return a_->rows(); }
  Index cols() const override { return a_->cols(); }

  VectorOf<Real> apply(const VectorOf<Real>& v) const override {
    return a_->apply(v) + b_->apply(v);
  }
  VectorOf<Real> apply_adjoint(const VectorOf<Real>& u) const override {
    return a_->apply_adjoint(u) + b_->apply_adjoint(u);
  }

 private:
  OperatorPtr<Real> a_, b_;
};

template <class Real>
class Scaled final : public LinearOperator<Real> {
 public:
  Scaled(Real c, OperatorPtr<Real> a) : c_(c), a_(std::move(a)) {}

  Index rows() const override { return a_->rows(); }
  Index cols() const override { return a_->cols(); }

  VectorOf<Real> apply(const VectorOf<Real>& v) const override {
    return c_ * a_->apply(v);
  }
  VectorOf<Real> apply_adjoint(const VectorOf<Real>& u) const override {
    return c_ * a_->apply_adjoint(u);
  }

 private:
  Real c_;
  OperatorPtr<Real> a_;
};

template <class Real>
class BlockDiagonal final : public LinearOperator<Real> {
 public:
  explicit BlockDiagonal(std::vector<OperatorPtr<Real>> blocks)
      : blocks_(std::move(blocks)) {
    for (const auto& block : blocks_) {
      rows_ += block->rows();
      cols_ += block->cols();
    }
  }

  Index rows() const override { return rows_; }
  Index cols() const override { return cols_; }

  VectorOf<Real> apply(const VectorOf<Real>& v) const override {
    VectorOf<Real> out(rows_);
    Index row = 0, col = 0;
    for (const auto& block : blocks_) {
      out.segment(row, block->rows()) =
          block->apply(v.segment(col, block->cols()));
      row += block->rows();
      col += block->cols();
    }
    return out;
  }

  VectorOf<Real> apply_adjoint(const VectorOf<Real>& u) const override {
    VectorOf<Real> out(cols_);
    Index row = 0, col = 0;
    for (const auto& block : blocks_) {
      out.segment(col, block->cols()) =
          block->apply_adjoint(u.segment(row, block->rows()));
      row += block->rows();
      col += block->cols();
    }
    return out;
  }

 private:
  std::vector<OperatorPtr<Real>> blocks_;
  Index rows_ = 0, cols_ = 0;
};

// ---- maps

template <class Real>
class ComposedMap final : public Map<Real> {
 public:
  ComposedMap(MapPtr<Real> outer, MapPtr<Real> inner)
      : outer_(std::move(outer)), inner_(std::move(inner)) {}

  MatrixOf<Real> operator()(const MatrixOf<Real>& x) const override {
    return (*outer_)((*inner_)(x));
  }
  OperatorPtr<Real> linearize(const MatrixOf<Real>& x) const override {
    return compose(outer_->linearize((*inner_)(x)), inner_->linearize(x));
  }
  const Map<Real>& inner() const { return *inner_; }

 private:
  MapPtr<Real> outer_, inner_;
};

template <class Real>
class ResidualMap final : public Map<Real> {
 public:
  ResidualMap(MapPtr<Real> f, Real carry) : f_(std::move(f)), carry_(carry) {}

  MatrixOf<Real> operator()(const MatrixOf<Real>& x) const override {
    MatrixOf<Real> y = (*f_)(x);
    require(y.rows() == x.rows() && y.cols() == x.cols(),
            "residual: the map takes [{}x{}] to [{}x{}]", x.rows(), x.cols(),
            y.rows(), y.cols());
    y += carry_ * x;
    return y;
  }
  OperatorPtr<Real> linearize(const MatrixOf<Real>& x) const override {
    return residual(f_->linearize(x), carry_);
  }
  const Map<Real>& inner() const { return *f_; }

 private:
  MapPtr<Real> f_;
  Real carry_;
};

template <class Real>
class SumMap final : public Map<Real> {
 public:
  SumMap(MapPtr<Real> f, MapPtr<Real> g) : f_(std::move(f)), g_(std::move(g)) {}

  MatrixOf<Real> operator()(const MatrixOf<Real>& x) const override {
    MatrixOf<Real> y = (*f_)(x);
    const MatrixOf<Real> z = (*g_)(x);
    require(y.rows() == z.rows() && y.cols() == z.cols(),
            "sum: the maps give [{}x{}] and [{}x{}]", y.rows(), y.cols(),
            z.rows(), z.cols());
    y += z;
    return y;
  }
  OperatorPtr<Real> linearize(const MatrixOf<Real>& x) const override {
    return sum(f_->linearize(x), g_->linearize(x));
  }

 private:
  MapPtr<Real> f_, g_;
};

template <class Real>
class ScaledMap final : public Map<Real> {
 public:
  ScaledMap(Real c, MapPtr<Real> f) : c_(c), f_(std::move(f)) {}

  MatrixOf<Real> operator()(const MatrixOf<Real>& x) const override {
    return c_ * (*f_)(x);
  }
  OperatorPtr<Real> linearize(const MatrixOf<Real>& x) const override {
    return scale(c_, f_->linearize(x));
  }
  const Map<Real>& inner() const { return *f_; }

 private:
  Real c_;
  MapPtr<Real> f_;
};

template <class Real>
class BatchMap final : public Map<Real> {
 public:
  BatchMap(MapPtr<Real> f, Index count) : f_(std::move(f)), count_(count) {
    require(count > 0, "batch: {} sequences", count);
  }

  MatrixOf<Real> operator()(const MatrixOf<Real>& x) const override {
    const Index n = length(x);
    MatrixOf<Real> out;
    for (Index b = 0; b < count_; ++b) {
      const MatrixOf<Real> y = (*f_)(x.middleRows(b * n, n));
      if (b == 0) out.resize(count_ * y.rows(), y.cols());
      out.middleRows(b * y.rows(), y.rows()) = y;
    }
    return out;
  }
  OperatorPtr<Real> linearize(const MatrixOf<Real>& x) const override {
    const Index n = length(x);
    std::vector<OperatorPtr<Real>> blocks;
    for (Index b = 0; b < count_; ++b)
      blocks.push_back(f_->linearize(x.middleRows(b * n, n)));
    return block_diagonal(std::move(blocks));
  }

 private:
  Index length(const MatrixOf<Real>& x) const {
    require(x.rows() % count_ == 0,
            "batch: {} rows do not make {} sequences of one length", x.rows(),
            count_);
    return x.rows() / count_;
  }

  MapPtr<Real> f_;
  Index count_;
};

}  // namespace

template <class Real>
const Map<Real>& first_map(const Map<Real>& f) {
  if (const auto* composed = dynamic_cast<const ComposedMap<Real>*>(&f))
    return first_map(composed->inner());
  if (const auto* residual = dynamic_cast<const ResidualMap<Real>*>(&f))
    return first_map(residual->inner());
  if (const auto* scaled = dynamic_cast<const ScaledMap<Real>*>(&f))
    return first_map(scaled->inner());
  return f;
}

template <class Real>
MapPtr<Real> compose(MapPtr<Real> outer, MapPtr<Real> inner) {
  return std::make_unique<ComposedMap<Real>>(std::move(outer),
                                             std::move(inner));
}
template <class Real>
MapPtr<Real> residual(MapPtr<Real> f, Real carry) {
  return std::make_unique<ResidualMap<Real>>(std::move(f), carry);
}
template <class Real>
MapPtr<Real> sum(MapPtr<Real> f, MapPtr<Real> g) {
  return std::make_unique<SumMap<Real>>(std::move(f), std::move(g));
}
template <class Real>
MapPtr<Real> scale(Real c, MapPtr<Real> f) {
  return std::make_unique<ScaledMap<Real>>(c, std::move(f));
}
template <class Real>
MapPtr<Real> batch(MapPtr<Real> f, Index count) {
  return std::make_unique<BatchMap<Real>>(std::move(f), count);
}

template <class Real>
OperatorPtr<Real> compose(OperatorPtr<Real> outer, OperatorPtr<Real> inner) {
  return std::make_unique<Product<Real>>(std::move(outer), std::move(inner));
}
template <class Real>
OperatorPtr<Real> residual(OperatorPtr<Real> a, Real carry) {
  return std::make_unique<IdentityPlus<Real>>(std::move(a), carry);
}
template <class Real>
OperatorPtr<Real> sum(OperatorPtr<Real> a, OperatorPtr<Real> b) {
  return std::make_unique<Sum<Real>>(std::move(a), std::move(b));
}
template <class Real>
OperatorPtr<Real> scale(Real c, OperatorPtr<Real> a) {
  return std::make_unique<Scaled<Real>>(c, std::move(a));
}
template <class Real>
OperatorPtr<Real> block_diagonal(std::vector<OperatorPtr<Real>> blocks) {
  return std::make_unique<BlockDiagonal<Real>>(std::move(blocks));
}

template const Map<float>& first_map(const Map<float>&);
template const Map<double>& first_map(const Map<double>&);
template MapPtr<float> compose(MapPtr<float>, MapPtr<float>);
template MapPtr<double> compose(MapPtr<double>, MapPtr<double>);
template MapPtr<float> residual(MapPtr<float>, float);
template MapPtr<double> residual(MapPtr<double>, double);
template MapPtr<float> sum(MapPtr<float>, MapPtr<float>);
template MapPtr<double> sum(MapPtr<double>, MapPtr<double>);
template MapPtr<float> scale(float, MapPtr<float>);
template MapPtr<double> scale(double, MapPtr<double>);
template MapPtr<float> batch(MapPtr<float>, Index);
template MapPtr<double> batch(MapPtr<double>, Index);
template OperatorPtr<float> compose(OperatorPtr<float>, OperatorPtr<float>);
template OperatorPtr<double> compose(OperatorPtr<double>, OperatorPtr<double>);
template OperatorPtr<float> residual(OperatorPtr<float>, float);
template OperatorPtr<double> residual(OperatorPtr<double>, double);
template OperatorPtr<float> sum(OperatorPtr<float>, OperatorPtr<float>);
template OperatorPtr<double> sum(OperatorPtr<double>, OperatorPtr<double>);
template OperatorPtr<float> scale(float, OperatorPtr<float>);
template OperatorPtr<double> scale(double, OperatorPtr<double>);
template OperatorPtr<float> block_diagonal(std::vector<OperatorPtr<float>>);
template OperatorPtr<double> block_diagonal(std::vector<OperatorPtr<double>>);

}  // namespace lipscope
