#include "lipscope/theory/unbounded.h"

#include <Eigen/QR>
#include <cmath>

#include "lipscope/attention/kinds.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/symmetric_eigen.h"

namespace lipscope {
namespace {

using Row = Eigen::RowVectorXd;

// the unit row u with the largest |uW|: W times the top right singular vector
Row most_stretched(const Matrix& w) {
  const Matrix gram = w.transpose() * w;
  const SymmetricEigen eigen = symmetric_eigen(gram);
  const Row u = (w * eigen.vectors.rightCols(1)).transpose();
  const double length = u.norm();
  return length > 0.0 ? Row(u / length) : u;
}

struct Direction {
  Row u;
  double rate = 0.0;
};

// W S with SS = RRᵀ: |uWS| = |uWR|, and W S is as narrow as W
Matrix narrow_product(const Matrix& w, const Matrix& r) {
  const SymmetricEigen gram = symmetric_eigen(r * r.transpose());
  const Matrix root = gram.vectors *
                      gram.values.cwiseMax(0.0).cwiseSqrt().asDiagonal() *
                      gram.vectors.transpose();
  return w * root;
}

Direction best_direction(const HeadWeights& h) {
  const double root = std::sqrt(static_cast<double>(h.query.cols()));
  // |Auᵀ| = |uW_KW_Qᵀ|/√k
  const Matrix scores = narrow_product(h.key, h.query.transpose()) / root;
  const Matrix values =
      h.output.size() > 0 ? narrow_product(h.value, h.output) : h.value;
  const Row a = most_stretched(scores), v = most_stretched(values);
  Direction best;
  for (const Row& u : {a, v, Row(a + v), Row(a - v)}) {
    const double length = u.norm();
    if (!(length > 0.0)) continue;
    const Row unit = u / length;
    const double rate = (unit * scores).norm() * (unit * values).norm();
    if (rate > best.rate) best = {unit, rate};
  }
  return best;
}

// where the query sees no difference between t u and −t u
Row indifferent(const HeadWeights& h, const Row& u) {
  const Vector kappa = (u * h.key).transpose();
  const Vector turned = h.query * kappa;  // W_Q κ
  return -(h.query_bias.dot(kappa) / turned.squaredNorm()) * turned.transpose();
}

}  // namespace

bool unbounded(Kind kind, const Mask& mask) {
  return !kind_of(kind).lipschitz_under(mask);
}

bool witness_grows(Kind kind, const Mask& mask, Index n) {
  const TokenRange seen = visible(mask, n - 1, n);
  const bool itself = kind == Kind::l2_untied && seen.end == n;
  return seen.size() - (itself ? 1 : 0) >= 2;
}

Matrix padded_l2_witness(const HeadWeights& h, const Mask& mask, Index n,
                         double t) {
  require_sound(mask, n);
  require(t > 0.0 && std::isfinite(t), "witness: t is {}", t);
  const Index padding = mask.padding_after > 0 ? n - 1 : 0;
  const TokenRange seen = visible(mask, padding, n);
  require(padding < seen.begin || padding >= seen.end,
          "witness: no token of the mask \"{}\" is padding", name_of(mask));
  require(seen.size() >= 2,
          "witness: padding sees {} token, the family has at least 2",
          seen.size());
  // values of tied attention are XA W_V
  HeadWeights tied = h;
  tied.value = h.query * (h.query.transpose() * h.value) /
               std::sqrt(static_cast<double>(h.query.cols()));
  const Direction best = best_direction(tied);
  require(best.rate > 0.0, "witness: queries or values of the head are zero");
  Matrix x(n, best.u.size());
  for (Index i = 0; i < n; ++i) x.row(i) = (i % 2 == 0 ? t : -t) * best.u;
  x.row(padding).setZero();
  return x;
}

double unbounded_rate(const HeadWeights& head) {
  return best_direction(head).rate;
}

Matrix unbounded_witness(const HeadWeights& h, Kind kind, Index n, double t) {
  require(unbounded(kind), "witness: {} attention is Lipschitz", name_of(kind));
  require(n >= 3, "witness: {} tokens, the family has at least 3", n);
  require(t > 0.0 && std::isfinite(t), "witness: t is {}", t);
  const Direction best = best_direction(h);
  require(best.rate > 0.0,
          "witness: queries, keys or values of the head are zero");
  const Row& u = best.u;

  Row special, centre = Row::Zero(u.size());
  if (kind == Kind::l2_untied) {
    const Matrix difference = h.query - h.key;
    const Row r = most_stretched(difference);
    const double apart = (r * difference).norm();
    require(apart > 0.0, "witness: queries and keys of the head are the same");
    const double bias = (h.query_bias - h.key_bias).norm();
    special = (2.0 * t * (u * h.key).norm() + bias) / apart * r;
    const Vector query = (special * h.query).transpose() + h.query_bias;
    // z W_K = q₀ − b_K, as nearly as keys can be
    centre = Matrix(h.key.transpose())
                 .completeOrthogonalDecomposition()
                 .solve(query - h.key_bias)
                 .transpose();
  } else {
    special = indifferent(h, u);
  }

  Matrix x(n, u.size());
  for (Index i = 0; i + 1 < n; ++i)
    x.row(i) = centre + (i % 2 == 0 ? t : -t) * u;
  x.row(n - 1) = special;
  return x;
}

}  // namespace lipscope
