// Dot-product attention [Vaswani17]: scores q kᵀ/√k, softmax, values as they
// are. A head compares the projections themselves.

#include <cmath>

#include "lipscope/attention/dense_head.h"
#include "lipscope/attention/kinds.h"

namespace lipscope {
namespace {

void dense_dot(const DenseHead& head, const AttentionOptions& o,
               const Matrix& x, Matrix& jacobian) {
  const double root = std::sqrt(static_cast<double>(head.wq.cols()));
  if (!o.plain_scores()) {
    add_by_scores(head, o,
                  {.score =
                       [&](const DenseRow& q, const DenseRow& k) {
                         return DenseScore{q.dot(k) / root, k / root, q / root};
                       }},
                  x, jacobian);
    return;
  }
  const Matrix A = head.wq * head.wk.transpose() / root;
  const DenseRow c = head.bq * head.wk.transpose() / root;
  add_by_covariance(
      head, o,
      {.score = [&](const DenseRow& q,
                    const DenseRow& k) { return q.dot(k) / root; },
       .pull = [&](const DenseRow& xi, const DenseRow&) -> DenseRow {
         return xi * A + c;
       },
       .own = A,
       .value = head.wv * head.out},
      x, jacobian);
}

}  // namespace

extern const AttentionKind dot_kind;
constinit const AttentionKind dot_kind{.kind = Kind::dot,
                                       .name = "dot",
                                       .query_over_root = true,
                                       .shift = ShiftEffect::queries_and_values,
                                       .dense = dense_dot};

}  // namespace lipscope
