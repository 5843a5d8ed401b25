#include "lipscope/attention/dense_head.h"

#include <cmath>
#include <vector>

namespace lipscope {
namespace {

// the tokens that token i sees, one by one
std::vector<Index> tokens_seen(const AttentionOptions& o, Index i, Index n) {
  std::vector<Index> seen;
  for (Index j = 0; j < n; ++j) {
    const bool hidden =
        !o.seen.empty()
            ? j >= o.seen[i]
            : (o.mask.hides_later && j > i) ||
                  std::abs(i - j) >= o.mask.window.value_or(n) ||
                  j < o.mask.padding_before || j + o.mask.padding_after >= n;
    if (!hidden) seen.push_back(j);
  }
  return seen;
}

// scores of the tokens seen to shares, with their masses
void take_softmax(const AttentionOptions& o, const std::vector<Index>& seen,
                  DenseRow& p) {
  if (o.log_mass.size() > 0) p += o.log_mass(seen).transpose();
  p = (p.array() - p.maxCoeff()).exp();
  p /= p.sum();
}

// what is added to the score of tokens i and j
double by_distance(const DenseHead& head, const AttentionOptions& o, Index i,
                   Index j) {
  if (!o.relative_bias) return 0.0;
  const Index bucket = relative_bucket(*o.relative_bias, j - i);
  return o.relative_bias->table(bucket, head.number);
}

// The angle between one position and the next of the plane whose wave is so
// many positions long; slow waves are stretched.
double step(const Rotary& rope, double wave) {
  double stretched = wave * rope.factor;
  if (rope.slow) {
    const double longest = rope.slow->context / rope.slow->slow;
    const double shortest = rope.slow->context / rope.slow->fast;
    if (wave < shortest) stretched = wave;
    if (wave >= shortest && wave <= longest) {
      const double smooth = (rope.slow->context / wave - rope.slow->slow) /
                            (rope.slow->fast - rope.slow->slow);
      stretched = 1 / ((1 - smooth) / (wave * rope.factor) + smooth / wave);
    }
  }
  return 2 * M_PI / stretched;
}

// the rotation of position p, from the right: planes (i, i + m)
Matrix rotation(const AttentionOptions& o, Index k, Index p) {
  Matrix r = Matrix::Identity(k, k);
  if (!o.rope) return r;
  const Index m = (o.rope->width == 0 ? k : o.rope->width) / 2;
  for (Index i = 0; i < m; ++i) {
    const double wave =
        2 * M_PI * std::pow(o.rope->theta, static_cast<double>(i) / m);
    const double angle = p * step(*o.rope, wave);
    r(i, i) = r(i + m, i + m) = std::cos(angle);
    r(i, i + m) = std::sin(angle);
    r(i + m, i) = -std::sin(angle);
  }
  return r;
}

// q/k-norm of a query or key z, and its derivative from the right
DenseFeature normed(const AttentionOptions& o, const DenseRow& z, bool query) {
  if (!o.query_key_norm) return as_projected(z);
  const Vector& gain =
      query ? o.query_key_norm->query_gain : o.query_key_norm->key_gain;
  const double size =
      std::sqrt(z.squaredNorm() / z.size() + o.query_key_norm->epsilon);
  const Matrix along = z.transpose() * z / (z.size() * size * size);
  return {z * gain.asDiagonal() / size,
          (Matrix::Identity(z.size(), z.size()) - along) * gain.asDiagonal() /
              size};
}

}  // namespace

void add_by_covariance(const DenseHead& head, const AttentionOptions& o,
                       const CovarianceForm& form, const Matrix& x,
                       Matrix& jacobian) {
  const Index n = x.rows(), d = x.cols(), e = form.value.cols();
  const Matrix identity = Matrix::Identity(d, d);
  for (Index i = 0; i < n; ++i) {
    const std::vector<Index> seen = tokens_seen(o, i, n);
    const Index count = static_cast<Index>(seen.size());
    const DenseRow xi = x.row(i), qi = xi * head.wq + head.bq;
    DenseRow p(count);
    for (Index s = 0; s < count; ++s)
      p[s] = form.score(qi, x.row(seen[s]) * head.wk + head.bk) +
             by_distance(head, o, i, seen[s]);
    take_softmax(o, seen, p);

    const Matrix others = x(seen, Eigen::all);
    const DenseRow m = p * others;
    const Matrix centred = others.rowwise() - m;
    const Matrix cov = centred.transpose() * p.asDiagonal() * centred;
    // (a token need not see itself to move with its own query)
    jacobian.block(i * e, i * d, e, d) +=
        (form.own * cov * form.value).transpose();
    for (Index s = 0; s < count; ++s) {
      const DenseRow xj = others.row(s);
      const Matrix B =
          p[s] * (identity + form.pull(xi, xj).transpose() * (xj - m));
      jacobian.block(i * e, seen[s] * d, e, d) += (B * form.value).transpose();
    }
  }
}

DenseFeature as_projected(const DenseRow& z) {
  return {z, Matrix::Identity(z.size(), z.size())};
}

void add_by_scores(const DenseHead& head, const AttentionOptions& o,
                   const ScoreForm& form, const Matrix& x, Matrix& jacobian) {
  const Index n = x.rows(), d = x.cols(), e = head.out.cols();
  std::vector<DenseFeature> q(n), k(n), v(n);
  std::vector<Matrix> wq(n), wk(n);  // as seen from each position
  for (Index i = 0; i < n; ++i) {
    const Matrix turn = rotation(o, head.wq.cols(), i);
    const DenseFeature nq = normed(o, x.row(i) * head.wq + head.bq, true);
    const DenseFeature nk = normed(o, x.row(i) * head.wk + head.bk, false);
    wq[i] = head.wq * nq.slope * turn;
    wk[i] = head.wk * nk.slope * turn;
    q[i] = form.compared(nq.value * turn);
    k[i] = form.compared(nk.value * turn);
    v[i] = form.mixed(x.row(i) * head.wv + head.bv);
  }

  for (Index i = 0; i < n; ++i) {
    const std::vector<Index> seen = tokens_seen(o, i, n);
    const Index count = static_cast<Index>(seen.size());
    std::vector<DenseScore> score(count);
    DenseRow p(count), slope(count), centre = DenseRow::Zero(head.wv.cols());
    for (Index s = 0; s < count; ++s) {
      score[s] = form.score(q[i].value, k[seen[s]].value);
      p[s] = score[s].value + by_distance(head, o, i, seen[s]);
    }
    if (form.sigmoid_shift) {
      for (Index s = 0; s < count; ++s) {
        const double t = p[s] + *form.sigmoid_shift;
        p[s] = 1 / (1 + std::exp(-t));
        slope[s] = p[s] / (1 + std::exp(t));  // 1 − p would cancel
      }
    } else {
      take_softmax(o, seen, p);
      slope = p;
      for (Index s = 0; s < count; ++s) centre += p[s] * v[seen[s]].value;
    }
    for (Index s = 0; s < count; ++s) {
      const Index j = seen[s];
      const DenseRow from_j = score[s].by_k * k[j].slope * wk[j].transpose();
      const DenseRow from_i = score[s].by_q * q[i].slope * wq[i].transpose();
      const DenseRow value = v[j].value - centre;
      const Matrix B =
          slope[s] * from_j.transpose() * value + p[s] * head.wv * v[j].slope;
      const Matrix own = slope[s] * from_i.transpose() * value;
      jacobian.block(i * e, j * d, e, d) += (B * head.out).transpose();
      jacobian.block(i * e, i * d, e, d) += (own * head.out).transpose();
    }
  }
}

}  // namespace lipscope
