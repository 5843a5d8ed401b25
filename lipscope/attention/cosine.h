#pragma once

#include "lipscope/attention/head.h"

/// Scaled cosine attention [Qi23] as a dot-product head: rows of q, k and v are
/// divided by their length,
///
///   N(z) = z / √(|z|² + ε),   features (τ N(q), N(k), ν N(v)).
///
/// All three are normalised; with raw v the map is not Lipschitz.
namespace lipscope {

struct CosineScales {
  double tau = 10.0;      ///< of the scores
  double nu = 1.0;        ///< of the values
  double epsilon = 1e-6;  ///< keeps N smooth at 0
};

template <class Real>
HeadFeatures<Real> cosine_features(const HeadFeatures<Real>& raw,
                                   const CosineScales& scales);

/// The tangent of cosine_features at `raw`, when the projections move by d. The
/// derivative of N is symmetric, (I − N Nᵀ)/√(|z|² + ε), so that the same
/// function takes cotangents of the features back to the projections.
template <class Real>
HeadFeatures<Real> cosine_features_tangent(const HeadFeatures<Real>& raw,
                                           const HeadFeatures<Real>& d,
                                           const CosineScales& scales);

/// The gradient by the projections `raw` of ⟨gd, features_tangent(d)⟩. For each
/// row of each of the three, with r = √(|z|² + ε),
///
///   ∂/∂z ⟨g, dN⟩ = [3⟨g,z⟩⟨z,dz⟩z/r² − ⟨g,dz⟩z − ⟨z,dz⟩g − ⟨g,z⟩dz]/r³.
template <class Real>
HeadFeatures<Real> cosine_features_bend(const HeadFeatures<Real>& raw,
                                        const HeadFeatures<Real>& d,
                                        const HeadFeatures<Real>& gd,
                                        const CosineScales& scales);

}  // namespace lipscope
