#include "lipscope/transport/fixed_measure_map.h"

#include <utility>

#include "lipscope/core/errors.h"

namespace lipscope {
namespace {

// the rows below of a sequence whose upper half stays
template <class Real>
class LowerHalf final : public LinearOperator<Real> {
 public:
  explicit LowerHalf(OperatorPtr<Real> whole) : whole_(std::move(whole)) {}

  Index rows() const override { return whole_->rows() / 2; }
  Index cols() const override { return whole_->cols() / 2; }

  VectorOf<Real> apply(const VectorOf<Real>& v) const override {
    return whole_->apply(below(v)).tail(rows());
  }
  VectorOf<Real> apply_adjoint(const VectorOf<Real>& u) const override {
    return whole_->apply_adjoint(below(u)).tail(cols());
  }

 private:
  static VectorOf<Real> below(const VectorOf<Real>& v) {
    VectorOf<Real> both = VectorOf<Real>::Zero(2 * v.size());
    both.tail(v.size()) = v;
    return both;
  }

  OperatorPtr<Real> whole_;
};

template <class Real>
class FixedMeasureMap final : public Map<Real> {
 public:
  FixedMeasureMap(const AttentionWeights& weights, AttentionOptions options,
                  const MatrixOf<Real>& held)
      : held_(held), attention_(weights, std::move(options)) {}

  MatrixOf<Real> operator()(const MatrixOf<Real>& x) const override {
    return attention_(under(x)).bottomRows(x.rows());
  }
  OperatorPtr<Real> linearize(const MatrixOf<Real>& x) const override {
    return std::make_unique<LowerHalf<Real>>(attention_.linearize(under(x)));
  }

 private:
  MatrixOf<Real> under(const MatrixOf<Real>& x) const {
    require(x.rows() == held_.rows() && x.cols() == held_.cols(),
            "fixed_measure_map: [{}x{}] tokens for the [{}x{}] of the measure",
            x.rows(), x.cols(), held_.rows(), held_.cols());
    MatrixOf<Real> both(2 * x.rows(), x.cols());
    both << held_, x;
    return both;
  }

  MatrixOf<Real> held_;
  MultiHeadAttention<Real> attention_;
};

}  // namespace

template <class Real>
MapPtr<Real> fixed_measure_map(const AttentionWeights& weights,
                               const AttentionOptions& options,
                               const Measure& measure) {
  // those who look stand behind the tokens, where nobody sees them, and see as
  // many as the tokens that they stand for
  AttentionOptions o = options_on(measure, options);
  const std::vector<Index> seen = o.seen;
  o.seen.insert(o.seen.end(), seen.begin(), seen.end());
  o.log_mass.conservativeResize(2 * measure.n());
  o.log_mass.tail(measure.n()).setZero();
  return std::make_unique<FixedMeasureMap<Real>>(weights, std::move(o),
                                                 measure.x.cast<Real>());
}

template MapPtr<float> fixed_measure_map(const AttentionWeights&,
                                         const AttentionOptions&,
                                         const Measure&);
template MapPtr<double> fixed_measure_map(const AttentionWeights&,
                                          const AttentionOptions&,
                                          const Measure&);

}  // namespace lipscope
