#include "lipscope/attention/dense.h"

#include <cmath>
#include <numeric>

#include "lipscope/core/errors.h"

namespace lipscope {
namespace {

using Row = Eigen::Matrix<double, 1, Eigen::Dynamic>;

// one head, cut out of the layer
struct Head {
  Matrix wq, wk;  // [d×k]
  Row bq, bk;     // [k]
  Matrix v;       // [d×e], its value map into the whole output
};

Head cut(const AttentionWeights& w, const AttentionOptions& o, Index slot) {
  const Index h = o.heads[slot], k = w.query_width(), width = w.value_width();
  const bool tied = o.kind == Kind::l2;
  const auto bias = [&](const Vector& b) {
    return b.size() == 0 ? Row(Row::Zero(k))
                         : Row(b.segment(h * k, k).transpose());
  };
  Head head;
  head.wq = w.query.middleCols(h * k, k);
  head.wk = (tied ? w.query : w.key).middleCols(h * k, k);
  head.bq = bias(w.query_bias);
  head.bk = bias(tied ? w.query_bias : w.key_bias);
  const Matrix value = w.value.middleCols(h * width, width);
  if (o.project && w.output.size() > 0) {
    head.v = value * w.output.middleRows(h * width, width);
  } else {
    const Index slots = static_cast<Index>(o.heads.size());
    head.v = Matrix::Zero(w.features(), slots * width);
    head.v.middleCols(slot * width, width) = value;
  }
  return head;
}

// s_ij, straight from the definition
double score(const Head& head, Kind kind, const Row& xi, const Row& xj) {
  const Row q = xi * head.wq + head.bq, k = xj * head.wk + head.bk;
  const double root = std::sqrt(static_cast<double>(head.wq.cols()));
  return kind == Kind::dot ? q.dot(k) / root : -(q - k).squaredNorm() / root;
}

void add_head(const Head& head, const AttentionOptions& o, const Matrix& x,
              Matrix& jacobian) {
  const Index n = x.rows(), d = x.cols(), e = head.v.cols();
  const double root = std::sqrt(static_cast<double>(head.wq.cols()));
  const Matrix identity = Matrix::Identity(d, d);
  const Matrix A = head.wq * head.wk.transpose() / root;
  const Row c = head.bq * head.wk.transpose() / root;
  const Matrix value = o.kind == Kind::l2 ? Matrix(A * head.v) : head.v;

  for (Index i = 0; i < n; ++i) {
    const Index seen = visible(o.mask, i, n);
    const Row xi = x.row(i);
    Row p(seen);
    for (Index j = 0; j < seen; ++j) p[j] = score(head, o.kind, xi, x.row(j));
    p = (p.array() - p.maxCoeff()).exp();
    p /= p.sum();

    const Row m = p * x.topRows(seen);
    const Matrix centred = x.topRows(seen).rowwise() - m;
    const Matrix cov = centred.transpose() * p.asDiagonal() * centred;

    for (Index j = 0; j < seen; ++j) {
      const Row xj = x.row(j);
      Row pull(d);  // ∂s_ij/∂x_j, up to what is constant in j along the row
      if (o.kind == Kind::dot)
        pull = xi * A + c;
      else if (o.kind == Kind::l2)
        pull = 2.0 * (xi - xj) * A;
      else
        pull = (2.0 / root) *
               (xi * head.wq + head.bq - xj * head.wk - head.bk) *
               head.wk.transpose();
      Matrix B = p[j] * (identity + pull.transpose() * (xj - m));
      if (i == j) B += (o.kind == Kind::dot ? 1.0 : 2.0) * A * cov;
      jacobian.block(i * e, j * d, e, d) += (B * value).transpose();
    }
  }
}

}  // namespace

Matrix dense_jacobian(const AttentionWeights& weights,
                      const AttentionOptions& options, const Matrix& x) {
  require_sound(weights, options.kind);
  require(options.sequences == 1, "dense_jacobian: {} sequences, it takes one",
          options.sequences);
  require(x.cols() == weights.features(),
          "dense_jacobian: tokens have {} features, the layer reads {}",
          x.cols(), weights.features());
  AttentionOptions chosen = options;
  if (chosen.heads.empty()) {
    chosen.heads.resize(weights.heads);
    std::iota(chosen.heads.begin(), chosen.heads.end(), Index{0});
  }

  const Index slots = static_cast<Index>(chosen.heads.size());
  const Index e = chosen.project && weights.output.size() > 0
                      ? weights.output.cols()
                      : slots * weights.value_width();
  Matrix jacobian = Matrix::Zero(x.rows() * e, x.size());
  for (Index slot = 0; slot < slots; ++slot)
    add_head(cut(weights, chosen, slot), chosen, x, jacobian);
  return jacobian;
}

}  // namespace lipscope
