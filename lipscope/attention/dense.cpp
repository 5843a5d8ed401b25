#include "lipscope/attention/dense.h"

#include <cmath>
#include <numeric>
#include <vector>

#include "lipscope/core/errors.h"

namespace lipscope {
namespace {

using Row = Eigen::Matrix<double, 1, Eigen::Dynamic>;

// one head, cut out of the layer
struct Head {
  Matrix wq, wk;  // [d×k]
  Row bq, bk;     // [k]
  Matrix v;       // [d×e], its value map into the whole output
  Matrix wv;      // [d×w], its value weights alone
  Row bv;         // [w]
  Matrix out;     // [w×e], from its values to the whole output
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
  head.wv = w.value.middleCols(h * width, width);
  head.bv = w.value_bias.size() == 0
                ? Row(Row::Zero(width))
                : Row(w.value_bias.segment(h * width, width).transpose());
  if (o.project && w.output.size() > 0) {
    head.out = w.output.middleRows(h * width, width);
  } else {
    const Index slots = static_cast<Index>(o.heads.size());
    head.out = Matrix::Zero(width, slots * width);
    head.out.middleCols(slot * width, width).setIdentity();
  }
  head.v = head.wv * head.out;
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

// N(z), or z itself, and its derivative, which is symmetric
struct Feature {
  Row value;
  Matrix slope;
};

Feature plain(const Row& z) {
  return {z, Matrix::Identity(z.size(), z.size())};
}

Feature normalized(const Row& z, double epsilon) {
  const double r = std::sqrt(z.squaredNorm() + epsilon);
  const Row unit = z / r;
  const Matrix identity = Matrix::Identity(z.size(), z.size());
  return {unit, (identity - unit.transpose() * unit) / r};
}

// sigmoid and cosine: from the gradient of each score
void add_head_by_scores(const Head& head, const AttentionOptions& o,
                        const Matrix& x, Matrix& jacobian) {
  const Index n = x.rows(), d = x.cols(), e = head.out.cols();
  const bool cosine = o.kind == Kind::cosine;
  const double root = std::sqrt(static_cast<double>(head.wq.cols()));
  const double scale = cosine ? o.cosine.tau : 1 / root;

  const auto feature = [&](const Row& z) {
    return cosine ? normalized(z, o.cosine.epsilon) : plain(z);
  };
  std::vector<Feature> q(n), k(n), v(n);
  for (Index i = 0; i < n; ++i) {
    q[i] = feature(x.row(i) * head.wq + head.bq);
    k[i] = feature(x.row(i) * head.wk + head.bk);
    v[i] = feature(x.row(i) * head.wv + head.bv);
    if (cosine) {
      v[i].value *= o.cosine.nu;
      v[i].slope *= o.cosine.nu;
    }
  }

  for (Index i = 0; i < n; ++i) {
    const Index seen = visible(o.mask, i, n);
    Row p(seen), slope(seen), centre = Row::Zero(head.wv.cols());
    for (Index j = 0; j < seen; ++j) p[j] = scale * q[i].value.dot(k[j].value);
    if (cosine) {
      p = (p.array() - p.maxCoeff()).exp();
      p /= p.sum();
      slope = p;
      for (Index j = 0; j < seen; ++j) centre += p[j] * v[j].value;
    } else {
      const double b = -std::log(static_cast<double>(n));
      for (Index j = 0; j < seen; ++j) p[j] = 1 / (1 + std::exp(-p[j] - b));
      slope = p.array() * (1 - p.array());
    }
    for (Index j = 0; j < seen; ++j) {
      const Row from_j = scale * q[i].value * k[j].slope * head.wk.transpose();
      const Row from_i = scale * k[j].value * q[i].slope * head.wq.transpose();
      const Row value = v[j].value - centre;
      const Matrix B =
          slope[j] * from_j.transpose() * value + p[j] * head.wv * v[j].slope;
      const Matrix own = slope[j] * from_i.transpose() * value;
      jacobian.block(i * e, j * d, e, d) += (B * head.out).transpose();
      jacobian.block(i * e, i * d, e, d) += (own * head.out).transpose();
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
    if (chosen.kind == Kind::cosine || chosen.kind == Kind::sigmoid)
      add_head_by_scores(cut(weights, chosen, slot), chosen, x, jacobian);
    else
      add_head(cut(weights, chosen, slot), chosen, x, jacobian);
  return jacobian;
}

}  // namespace lipscope
