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
  // queries of head h meet the keys and values of group g
  const Index g = w.key_heads == 0 ? h : h * w.key_heads / w.heads;
  const auto bias = [&](const Vector& b, Index head, Index size) {
    return b.size() == 0 ? Row(Row::Zero(size))
                         : Row(b.segment(head * size, size).transpose());
  };
  Head head;
  head.wq = w.query.middleCols(h * k, k);
  head.wk = tied ? head.wq : Matrix(w.key.middleCols(g * k, k));
  head.bq = bias(w.query_bias, h, k);
  head.bk = tied ? head.bq : bias(w.key_bias, g, k);
  head.wv = w.value.middleCols(g * width, width);
  head.bv = bias(w.value_bias, g, width);
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

Index tokens_seen(const AttentionOptions& o, Index i, Index n) {
  return o.seen.empty() ? visible(o.mask, i, n) : o.seen[i];
}

double log_mass(const AttentionOptions& o, Index j) {
  return o.log_mass.size() == 0 ? 0.0 : o.log_mass[j];
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
    const Index seen = tokens_seen(o, i, n);
    const Row xi = x.row(i);
    Row p(seen);
    for (Index j = 0; j < seen; ++j)
      p[j] = score(head, o.kind, xi, x.row(j)) + log_mass(o, j);
    p = (p.array() - p.maxCoeff()).exp();
    p /= p.sum();

    const Row m = p * x.topRows(seen);
    const Matrix centred = x.topRows(seen).rowwise() - m;
    const Matrix cov = centred.transpose() * p.asDiagonal() * centred;
    const Matrix own = (o.kind == Kind::dot ? 1.0 : 2.0) * A * cov;
    // (a token need not see itself to move with its own query)
    jacobian.block(i * e, i * d, e, d) += (own * value).transpose();

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
      const Matrix B = p[j] * (identity + pull.transpose() * (xj - m));
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

// the rotation of position p, from the right: planes (i, i + k/2)
Matrix rotation(const AttentionOptions& o, Index k, Index p) {
  Matrix r = Matrix::Identity(k, k);
  for (Index i = 0; o.rope_theta && i < k / 2; ++i) {
    const double angle = p / std::pow(*o.rope_theta, 2.0 * i / k);
    r(i, i) = r(i + k / 2, i + k / 2) = std::cos(angle);
    r(i, i + k / 2) = std::sin(angle);
    r(i + k / 2, i) = -std::sin(angle);
  }
  return r;
}

// sigmoid, cosine and rotated heads: from the gradient of each score
void add_head_by_scores(const Head& head, const AttentionOptions& o,
                        const Matrix& x, Matrix& jacobian) {
  const Index n = x.rows(), d = x.cols(), e = head.out.cols();
  const bool cosine = o.kind == Kind::cosine, l2 = o.kind == Kind::l2_untied;
  const double root = std::sqrt(static_cast<double>(head.wq.cols()));
  const double scale = cosine ? o.cosine.tau : 1 / root;

  const auto feature = [&](const Row& z) {
    return cosine ? normalized(z, o.cosine.epsilon) : plain(z);
  };
  std::vector<Feature> q(n), k(n), v(n);
  std::vector<Matrix> wq(n), wk(n);  // as seen from each position
  for (Index i = 0; i < n; ++i) {
    const Matrix turn = rotation(o, head.wq.cols(), i);
    wq[i] = head.wq * turn;
    wk[i] = head.wk * turn;
    q[i] = feature(x.row(i) * wq[i] + head.bq * turn);
    k[i] = feature(x.row(i) * wk[i] + head.bk * turn);
    v[i] = feature(x.row(i) * head.wv + head.bv);
    if (cosine) {
      v[i].value *= o.cosine.nu;
      v[i].slope *= o.cosine.nu;
    }
  }

  for (Index i = 0; i < n; ++i) {
    const Index seen = tokens_seen(o, i, n);
    Row p(seen), slope(seen), centre = Row::Zero(head.wv.cols());
    for (Index j = 0; j < seen; ++j)
      p[j] = scale * (l2 ? -(q[i].value - k[j].value).squaredNorm()
                         : q[i].value.dot(k[j].value));
    if (o.kind != Kind::sigmoid) {
      for (Index j = 0; j < seen; ++j) p[j] += log_mass(o, j);
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
      const Row gap = 2 * (q[i].value - k[j].value);
      const Row along_k = l2 ? gap : q[i].value;  // ∂s/∂k_j over the scale
      const Row along_q = l2 ? Row(-gap) : k[j].value;
      const Row from_j = scale * along_k * k[j].slope * wk[j].transpose();
      const Row from_i = scale * along_q * q[i].slope * wq[i].transpose();
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
  require(!options.rope_theta || options.kind != Kind::l2,
          "dense_jacobian: tied l2 attention is not rotated");
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
    if (chosen.kind == Kind::cosine || chosen.kind == Kind::sigmoid ||
        chosen.rope_theta)
      add_head_by_scores(cut(weights, chosen, slot), chosen, x, jacobian);
    else
      add_head(cut(weights, chosen, slot), chosen, x, jacobian);
  return jacobian;
}

}  // namespace lipscope
