#include "lipscope/attention/l2.h"

#include <boost/math/special_functions/lambert_w.hpp>
#include <cmath>

#include "lipscope/attention/dense_head.h"
#include "lipscope/attention/kinds.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/rounding.h"

namespace lipscope {
namespace {

template <class Real>
constexpr KindFeatures<Real> features_of_l2() {
  using Features = HeadFeatures<Real>;
  return {
      .make = [](const Features& raw,
                 const AttentionOptions&) { return l2_features(raw); },
      .tangent =
          [](const Features&, const Features& at, const Features& d,
             const AttentionOptions&) { return l2_features_tangent(at, d); },
      .cotangent =
          [](const Features&, const Features& at, const Features& g,
             const AttentionOptions&) { return l2_features_cotangent(at, g); },
      .add_bend = [](const Features&, const Features& d, const Features& gd,
                     const AttentionOptions&,
                     Features& back) { back.k += l2_features_bend(d, gd); }};
}

// ---- the oracle

double root_of(const DenseHead& head) {
  return std::sqrt(static_cast<double>(head.wq.cols()));
}

// [Kim21]: B_ij = [2δ_ij A Cov_i + P_ij (I + 2A(x_i − x_j)ᵀ(x_j − m_i))] A V
void dense_l2(const DenseHead& head, const AttentionOptions& o, const Matrix& x,
              Matrix& jacobian) {
  const double root = root_of(head);
  const Matrix A = head.wq * head.wq.transpose() / root;
  add_by_covariance(
      head, o,
      {.score =
           [&](const DenseRow& q, const DenseRow& k) {
             return -(q - k).squaredNorm() / root;
           },
       .pull = [&](const DenseRow& xi, const DenseRow& xj) -> DenseRow {
         return 2.0 * (xi - xj) * A;
       },
       .own = 2.0 * A,
       .value = A * (head.wv * head.out)},
      x, jacobian);
}

// with r_ij = x_iW_Q + b_Q − x_jW_K − b_K and D = 2/√k:
// B_ij = [D δ_ij W_Q W_Kᵀ Cov_i + P_ij (I + D W_K r_ijᵀ (x_j − m_i))] V
void dense_l2_untied(const DenseHead& head, const AttentionOptions& o,
                     const Matrix& x, Matrix& jacobian) {
  const double root = root_of(head);
  if (!o.plain_scores()) {
    add_by_scores(
        head, o,
        {.score =
             [&](const DenseRow& q, const DenseRow& k) {
               const DenseRow gap = (2.0 / root) * (q - k);
               return DenseScore{-(q - k).squaredNorm() / root, -gap, gap};
             }},
        x, jacobian);
    return;
  }
  add_by_covariance(
      head, o,
      {.score =
           [&](const DenseRow& q, const DenseRow& k) {
             return -(q - k).squaredNorm() / root;
           },
       .pull = [&](const DenseRow& xi, const DenseRow& xj) -> DenseRow {
         return (2.0 / root) *
                (xi * head.wq + head.bq - xj * head.wk - head.bk) *
                head.wk.transpose();
       },
       .own = (2.0 / root) * head.wq * head.wk.transpose(),
       .value = head.wv * head.out},
      x, jacobian);
}

}  // namespace

extern const AttentionKind l2_kind, l2_untied_kind;

constinit const AttentionKind l2_kind{
    .kind = Kind::l2,
    .name = "l2",
    .note = "tied, Lipschitz",
    .tied = true,
    .lipschitz = true,
    .by_itself = true,
    // distances do not feel a shift
    .shift = ShiftEffect::values,
    .no_rope =
        "tied l2 attention with rotated tokens is not Lipschitz: they can be "
        "near each other while their values are far apart",
    .value_weights = l2_value,
    .f32 = features_of_l2<float>(),
    .f64 = features_of_l2<double>(),
    .dense = dense_l2};

constinit const AttentionKind l2_untied_kind{.kind = Kind::l2_untied,
                                             .name = "l2-untied",
                                             .f32 = features_of_l2<float>(),
                                             .f64 = features_of_l2<double>(),
                                             .dense = dense_l2_untied};

template <class Real>
HeadFeatures<Real> l2_features(const HeadFeatures<Real>& raw) {
  const Index n = raw.q.rows(), k = raw.q.cols();
  const Real root = std::sqrt(static_cast<Real>(k));
  const Eigen::Matrix<Real, 1, Eigen::Dynamic> mean = raw.k.colwise().mean();

  HeadFeatures<Real> at{
      .q = MatrixOf<Real>(n, k + 1), .k = MatrixOf<Real>(n, k + 1), .v = raw.v};
  at.q.leftCols(k) = (2 / root) * (raw.q.rowwise() - mean);
  at.q.col(k).setOnes();
  at.k.leftCols(k) = raw.k.rowwise() - mean;
  at.k.col(k) = at.k.leftCols(k).rowwise().squaredNorm() / -root;
  return at;
}

template <class Real>
HeadFeatures<Real> l2_features_tangent(const HeadFeatures<Real>& at,
                                       const HeadFeatures<Real>& d) {
  const Index n = d.q.rows(), k = d.q.cols();
  const Real root = std::sqrt(static_cast<Real>(k));

  HeadFeatures<Real> out{
      .q = MatrixOf<Real>(n, k + 1), .k = MatrixOf<Real>(n, k + 1), .v = d.v};
  out.q.leftCols(k) = (2 / root) * d.q;
  out.q.col(k).setZero();
  out.k.leftCols(k) = d.k;
  // d(−|k|²/√k) = −(2/√k) ⟨k, dk⟩
  out.k.col(k) =
      (at.k.leftCols(k).cwiseProduct(d.k)).rowwise().sum() * (-2 / root);
  return out;
}

template <class Real>
HeadFeatures<Real> l2_features_cotangent(const HeadFeatures<Real>& at,
                                         const HeadFeatures<Real>& g) {
  const Index k = g.q.cols() - 1;
  const Real root = std::sqrt(static_cast<Real>(k));

  HeadFeatures<Real> out;
  out.q = (2 / root) * g.q.leftCols(k);
  out.k = g.k.leftCols(k) -
          (2 / root) * (g.k.col(k).asDiagonal() * at.k.leftCols(k));
  out.v = g.v;
  return out;
}

template <class Real>
MatrixOf<Real> l2_features_bend(const HeadFeatures<Real>& d,
                                const HeadFeatures<Real>& gd) {
  const Index k = d.k.cols();
  const Real root = std::sqrt(static_cast<Real>(k));
  return (-2 / root) * (gd.k.col(k).asDiagonal() * d.k);
}

Matrix l2_value(const AttentionWeights& w) {
  const Index k = w.query_width(), width = w.value_width();
  Matrix value(w.value.rows(), w.heads * width);
  for (Index h = 0; h < w.heads; ++h) {
    const auto query = w.query.middleCols(h * k, k);
    const Matrix inner =
        query.transpose() * w.value.middleCols(w.key_head(h) * width, width);
    value.middleCols(h * width, width) =
        query * inner / std::sqrt(static_cast<double>(k));
  }
  return value;
}

double kim21_phi_inverse(Index n) {
  require(n >= 1, "kim21: {} tokens", n);
  const double x = static_cast<double>(n - 1) / std::exp(1.0);
  return well_above(boost::math::lambert_w0(well_above(x)));
}

template HeadFeatures<float> l2_features(const HeadFeatures<float>&);
template HeadFeatures<double> l2_features(const HeadFeatures<double>&);
template HeadFeatures<float> l2_features_tangent(const HeadFeatures<float>&,
                                                 const HeadFeatures<float>&);
template HeadFeatures<double> l2_features_tangent(const HeadFeatures<double>&,
                                                  const HeadFeatures<double>&);
template HeadFeatures<float> l2_features_cotangent(const HeadFeatures<float>&,
                                                   const HeadFeatures<float>&);
template HeadFeatures<double> l2_features_cotangent(
    const HeadFeatures<double>&, const HeadFeatures<double>&);
template MatrixOf<float> l2_features_bend(const HeadFeatures<float>&,
                                          const HeadFeatures<float>&);
template MatrixOf<double> l2_features_bend(const HeadFeatures<double>&,
                                           const HeadFeatures<double>&);

}  // namespace lipscope
