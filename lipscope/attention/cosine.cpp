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

// the gradient by z of ⟨g, normalized_tangent(z, dz)⟩, row by row
template <class Real>
MatrixOf<Real> normalized_bend(const MatrixOf<Real>& z,
                               const MatrixOf<Real>& dz,
                               const MatrixOf<Real>& g, double scale,
                               double epsilon) {
  const VectorOf<Real> r = lengths(z, epsilon);
  MatrixOf<Real> bend(z.rows(), z.cols());
  for (Index i = 0; i < z.rows(); ++i) {
    const Real gz = g.row(i).dot(z.row(i)), gd = g.row(i).dot(dz.row(i));
    const Real zd = z.row(i).dot(dz.row(i)), r2 = r[i] * r[i];
    bend.row(i) =
        static_cast<Real>(scale) / (r2 * r[i]) *
        ((3 * gz * zd / r2 - gd) * z.row(i) - zd * g.row(i) - gz * dz.row(i));
  }
  return bend;
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

template <class Real>
HeadFeatures<Real> cosine_features_bend(const HeadFeatures<Real>& raw,
                                        const HeadFeatures<Real>& d,
                                        const HeadFeatures<Real>& gd,
                                        const CosineScales& s) {
  return {.q = normalized_bend(raw.q, d.q, gd.q, s.tau, s.epsilon),
          .k = normalized_bend(raw.k, d.k, gd.k, 1.0, s.epsilon),
          .v = normalized_bend(raw.v, d.v, gd.v, s.nu, s.epsilon)};
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
template HeadFeatures<float> cosine_features_bend(const HeadFeatures<float>&,
                                                  const HeadFeatures<float>&,
                                                  const HeadFeatures<float>&,
                                                  const CosineScales&);
template HeadFeatures<double> cosine_features_bend(const HeadFeatures<double>&,
                                                   const HeadFeatures<double>&,
                                                   const HeadFeatures<double>&,
                                                   const CosineScales&);

}  // namespace lipscope
