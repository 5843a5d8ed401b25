#include "lipscope/model/coordinate_contraction.h"

#include <boost/math/special_functions/lambert_w.hpp>
#include <cmath>
#include <utility>

#include "lipscope/attention/head_weights.h"
#include "lipscope/attention/l2.h"
#include "lipscope/core/errors.h"

namespace lipscope {
namespace {

struct Sizes {
  Index heads, k;

  template <class Real>
  Sizes(const ConstView<Real>& query, const ConstView<Real>& effective,
        const Vector& p)
      : heads(p.size()), k(heads > 0 ? query.cols() / heads : 0) {
    require(heads >= 1 && query.cols() == heads * k &&
                effective.rows() == heads * k,
            "coordinate contraction: {} features are compared, {} are written, "
            "by {} heads",
            query.cols(), effective.rows(), heads);
  }
};

double root_of_sum(const Matrix& gram) {
  return std::sqrt(gram.cwiseAbs().sum());
}

}  // namespace

double distance_phi_inverse(const Vector& behind, Vector& g) {
  g = Vector::Zero(behind.size());
  if (behind.size() <= 1) return 0.0;
  const Index others = behind.size() - 1;
  const double largest = behind.tail(others).maxCoeff();
  g.tail(others) = (behind.tail(others).array() - largest).exp();
  const double sum = g.sum();
  const double log_mass = largest + std::log(sum) - behind[0];
  require(log_mass < 500.0,
          "coordinate contraction: a head looks away from the token itself by "
          "e^{:.0f}",
          log_mass);
  const double p = boost::math::lambert_w0(std::exp(log_mass - 1.0));
  // p + ln p + 1 = ln M:  dp = p/(1 + p) d ln M
  const double slope = p / (1.0 + p);
  g *= slope / sum;
  g[0] = -slope;
  return p;
}

double distance_phi_inverse(const Vector& behind) {
  Vector ignored;
  return distance_phi_inverse(behind, ignored);
}

Vector head_phi_inverses(const RelativeBias* bias, Index heads, Index n) {
  Vector p(heads);
  for (Index h = 0; h < heads; ++h)
    p[h] = bias == nullptr ? kim21_phi_inverse(n)
                           : distance_phi_inverse(scores_behind(*bias, h, n));
  return p;
}

template <class Real>
Vector coordinate_contractions(const ConstView<Real>& query,
                               const ConstView<Real>& effective,
                               const Vector& p) {
  const Sizes s(query, effective, p);
  Vector c = Vector::Zero(effective.cols());
  for (Index h = 0; h < s.heads; ++h) {
    const Matrix q = query.middleCols(h * s.k, s.k).template cast<double>();
    const Matrix e = effective.middleRows(h * s.k, s.k).template cast<double>();
    const double compared = 4.0 * p[h] * root_of_sum(q * q.transpose());
    c += compared * e.colwise().norm().transpose();
    c += (q * e).cwiseAbs().colwise().sum().transpose();
  }
  return c;
}

template <class Real>
Vector coordinate_contractions_backward(const ConstView<Real>& query,
                                        const ConstView<Real>& effective,
                                        const Vector& p, const Vector& g,
                                        View<Real> gquery,
                                        View<Real> geffective) {
  const Sizes s(query, effective, p);
  Vector gp = Vector::Zero(s.heads);
  for (Index h = 0; h < s.heads; ++h) {
    const Matrix q = query.middleCols(h * s.k, s.k).template cast<double>();
    const Matrix e = effective.middleRows(h * s.k, s.k).template cast<double>();
    const Matrix gram = q * q.transpose();
    const double size = root_of_sum(gram);
    const Vector lengths = e.colwise().norm();
    // 4 p N |E_j|, each by the others
    const double along = g.dot(lengths);
    gp[h] = 4.0 * size * along;
    const Vector over =
        (lengths.array() > 0.0)
            .select(4.0 * p[h] * size * g.array() / lengths.array(), 0.0);
    Matrix ge = e * over.asDiagonal();
    Matrix gq = Matrix::Zero(q.rows(), q.cols());
    // N² = Σ|QQᵀ|:  dN = ⟨sign(QQᵀ)Q, dQ⟩/N
    if (size > 0.0) gq = (4.0 * p[h] * along / size) * (gram.cwiseSign() * q);
    // Σ|QE_j|:  by QE it is sign(QE)
    const Matrix gboth = (q * e).cwiseSign() * g.asDiagonal();
    gq += gboth * e.transpose();
    ge += q.transpose() * gboth;
    gquery.middleCols(h * s.k, s.k) += gq.template cast<Real>();
    geffective.middleRows(h * s.k, s.k) += ge.template cast<Real>();
  }
  return gp;
}

void divide_coordinates(AttentionWeights& w, const Vector& p,
                        double contraction) {
  const Index k = w.query_width();
  const double root_k = std::sqrt(static_cast<double>(k));
  Matrix effective(w.heads * k, w.output.cols());
  for (Index h = 0; h < w.heads; ++h) {
    const HeadWeights one = head(w, h);
    effective.middleRows(h * k, k) =
        (one.query.transpose() * one.value) * one.output / root_k;
  }
  const Vector c = coordinate_contractions<double>(
      view(std::as_const(w.query)), view(std::as_const(effective)), p);
  for (Index j = 0; j < c.size(); ++j)
    if (c[j] > 0.0) w.output.col(j) *= contraction / c[j];
}

template Vector coordinate_contractions(const ConstView<float>&,
                                        const ConstView<float>&, const Vector&);
template Vector coordinate_contractions(const ConstView<double>&,
                                        const ConstView<double>&,
                                        const Vector&);
template Vector coordinate_contractions_backward(const ConstView<float>&,
                                                 const ConstView<float>&,
                                                 const Vector&, const Vector&,
                                                 View<float>, View<float>);
template Vector coordinate_contractions_backward(const ConstView<double>&,
                                                 const ConstView<double>&,
                                                 const Vector&, const Vector&,
                                                 View<double>, View<double>);

}  // namespace lipscope
