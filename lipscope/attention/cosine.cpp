#include "lipscope/attention/cosine.h"

#include <cmath>

#include "lipscope/attention/dense_head.h"
#include "lipscope/attention/kinds.h"

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

template <class Real>
constexpr KindFeatures<Real> features_of_cosine() {
  using Features = HeadFeatures<Real>;
  constexpr auto tangent = [](const Features& raw, const Features&,
                              const Features& d, const AttentionOptions& o) {
    return cosine_features_tangent(raw, d, o.cosine);
  };
  return {.make =
              [](const Features& raw, const AttentionOptions& o) {
                return cosine_features(raw, o.cosine);
              },
          .tangent = tangent,
          .cotangent = tangent,  // symmetric
          .add_bend =
              [](const Features& raw, const Features& d, const Features& gd,
                 const AttentionOptions& o, Features& back) {
                const Features bend =
                    cosine_features_bend(raw, d, gd, o.cosine);
                back.q += bend.q;
                back.k += bend.k;
                back.v += bend.v;
              },
          .reads_raw = true};
}

// ---- the oracle

// N(z) = z/√(|z|² + ε) has ∂N/∂z = (I − NᵀN)/√(|z|² + ε)
DenseFeature unit_row(const DenseRow& z, double scale, double epsilon) {
  const double r = std::sqrt(z.squaredNorm() + epsilon);
  const DenseRow unit = z / r;
  const Matrix identity = Matrix::Identity(z.size(), z.size());
  return {scale * unit, scale * (identity - unit.transpose() * unit) / r};
}

void dense_cosine(const DenseHead& head, const AttentionOptions& o,
                  const Matrix& x, Matrix& jacobian) {
  const CosineScales& c = o.cosine;
  add_by_scores(
      head, o,
      {.score =
           [&](const DenseRow& q, const DenseRow& k) {
             return DenseScore{c.tau * q.dot(k), c.tau * k, c.tau * q};
           },
       .compared =
           [&](const DenseRow& z) { return unit_row(z, 1.0, c.epsilon); },
       .mixed =
           [&](const DenseRow& z) { return unit_row(z, c.nu, c.epsilon); }},
      x, jacobian);
}

}  // namespace

extern const AttentionKind cosine_kind;
constinit const AttentionKind cosine_kind{
    .kind = Kind::cosine,
    .name = "cosine",
    .lipschitz = true,
    .scaled = true,
    .values_as_they_are = false,  // they are normalised after their bias
    .f32 = features_of_cosine<float>(),
    .f64 = features_of_cosine<double>(),
    .dense = dense_cosine};

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
