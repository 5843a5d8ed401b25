#include "lipscope/attention/sigmoid.h"

#include <cmath>

#include "lipscope/attention/dense_head.h"
#include "lipscope/attention/kinds.h"

namespace lipscope {
namespace {

// b = −log n with the full n, also under a causal mask [Ramapuram24]
double shift_for(Index n) { return -std::log(static_cast<double>(n)); }

void dense_sigmoid(const DenseHead& head, const AttentionOptions& o,
                   const Matrix& x, Matrix& jacobian) {
  const double root = std::sqrt(static_cast<double>(head.wq.cols()));
  add_by_scores(head, o,
                {.score =
                     [&](const DenseRow& q, const DenseRow& k) {
                       return DenseScore{q.dot(k) / root, k / root, q / root};
                     },
                 .sigmoid_shift = -std::log(static_cast<double>(x.rows()))},
                x, jacobian);
}

}  // namespace

extern const AttentionKind sigmoid_kind;
constinit const AttentionKind sigmoid_kind{.kind = Kind::sigmoid,
                                           .name = "sigmoid",
                                           .query_over_root = true,
                                           .sigmoid_shift = shift_for,
                                           .dense = dense_sigmoid};

template <class Real>
MatrixOf<Real> sigmoid_rows(MatrixOf<Real> scores, const Mask& mask,
                            Real shift) {
  const Index n = scores.cols();
  for (Index i = 0; i < scores.rows(); ++i) {
    const TokenRange range = visible(mask, i, n);
    auto seen = scores.row(i).segment(range.begin, range.size());
    seen.array() = 1 / (1 + (-shift - seen.array()).exp());
    scores.row(i).head(range.begin).setZero();
    scores.row(i).tail(n - range.end).setZero();
  }
  return scores;
}

template <class Real>
MatrixOf<Real> sigmoid_derivative(const MatrixOf<Real>& scores,
                                  const Mask& mask, Real shift,
                                  MatrixOf<Real> t) {
  const Index n = scores.cols();
  for (Index i = 0; i < scores.rows(); ++i) {
    const TokenRange range = visible(mask, i, n);
    const auto seen = scores.row(i).segment(range.begin, range.size());
    t.row(i).segment(range.begin, range.size()).array() *=
        sigmoid_slope(seen.array() + shift);
    t.row(i).head(range.begin).setZero();
    t.row(i).tail(n - range.end).setZero();
  }
  return t;
}

template MatrixOf<float> sigmoid_rows(MatrixOf<float>, const Mask&, float);
template MatrixOf<double> sigmoid_rows(MatrixOf<double>, const Mask&, double);
template MatrixOf<float> sigmoid_derivative(const MatrixOf<float>&, const Mask&,
                                            float, MatrixOf<float>);
template MatrixOf<double> sigmoid_derivative(const MatrixOf<double>&,
                                             const Mask&, double,
                                             MatrixOf<double>);

}  // namespace lipscope
