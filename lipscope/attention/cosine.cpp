#include "lipscope/attention/cosine.h"

namespace lipscope {
namespace {

// √(|z|² + ε) of each row
template <class Real>
VectorOf<Real> lengths(const MatrixOf<Real>& z, double epsilon) {
  return (z.rowwise().squaredNorm().array() + static_cast<Real>(epsilon))
      .sqrt();
}

template <class Real>
MatrixOf<Real> normalized(const MatrixOf<Real>& z, double scale,
                          double epsilon) {
  const VectorOf<Real> by =
      static_cast<Real>(scale) * lengths(z, epsilon).cwiseInverse();
  return by.asDiagonal() * z;
}

// s (dz − N⟨N, dz⟩)/r, row by row
template <class Real>
MatrixOf<Real> normalized_tangent(const MatrixOf<Real>& z,
                                  const MatrixOf<Real>& dz, double scale,
                                  double epsilon) {
  const VectorOf<Real> r = lengths(z, epsilon);
  const VectorOf<Real> along =
      z.cwiseProduct(dz).rowwise().sum().cwiseQuotient(r.cwiseAbs2());
  const VectorOf<Real> by = static_cast<Real>(scale) * r.cwiseInverse();
  return by.asDiagonal() * (dz - along.asDiagonal() * z);
}

}  // namespace

template <class Real>
HeadFeatures<Real> cosine_features(const HeadFeatures<Real>& raw,
                                   const CosineScales& s) {
  return {.q = normalized(raw.q, s.tau, s.epsilon),
          .k = normalized(raw.k, 1.0, s.epsilon),
          .v = normalized(raw.v, s.nu, s.epsilon)};
}

template <class Real>
HeadFeatures<Real> cosine_features_tangent(const HeadFeatures<Real>& raw,
                                           const HeadFeatures<Real>& d,
                                           const CosineScales& s) {
  return {.q = normalized_tangent(raw.q, d.q, s.tau, s.epsilon),
          .k = normalized_tangent(raw.k, d.k, 1.0, s.epsilon),
          .v = normalized_tangent(raw.v, d.v, s.nu, s.epsilon)};
}

template HeadFeatures<float> cosine_features(const HeadFeatures<float>&,
                                             const CosineScales&);
template HeadFeatures<double> cosine_features(const HeadFeatures<double>&,
                                              const CosineScales&);
template HeadFeatures<float> cosine_features_tangent(const HeadFeatures<float>&,
                                                     const HeadFeatures<float>&,
                                                     const CosineScales&);
template HeadFeatures<double> cosine_features_tangent(
    const HeadFeatures<double>&, const HeadFeatures<double>&,
    const CosineScales&);

}  // namespace lipscope
