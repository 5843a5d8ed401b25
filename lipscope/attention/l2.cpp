#include "lipscope/attention/l2.h"

#include <boost/math/special_functions/lambert_w.hpp>
#include <cmath>

#include "lipscope/core/errors.h"
#include "lipscope/core/rounding.h"

namespace lipscope {

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
