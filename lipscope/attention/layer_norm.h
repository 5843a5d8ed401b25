#pragma once

#include "lipscope/operators/map.h"

namespace lipscope {

/// The parameters of a normalisation of D features, in f64.
///
///   layer  y = γ ∘ z/√(σ² + ε) + β,  z = x − mean(x), σ² = |z|²/D [Ba16]
///   rms    the same with z = x [Zhang19]
///
/// The variance is the biased one, divided by D.
struct NormWeights {
  enum class Kind { layer, rms };

  Kind kind = Kind::layer;
  Vector gain;  ///< γ [D]
  Vector bias;  ///< β [D], or empty
  double epsilon = 1e-5;
};

/// Throws std::invalid_argument unless the sizes fit, every number is finite
/// and ε > 0.
void require_sound(const NormWeights& weights);

/// LayerNorm or RMSNorm of each token by itself. With u = z/√(σ² + ε),
///
///   dy = γ ∘ (dz − u ⟨u, dz⟩/D)/√(σ² + ε),  dz = dx − mean(dx)  (rms: dx),
///
/// so that the Jacobian of a token has norm at most max|γ|/√(σ² + ε).
template <class Real>
class LayerNorm final : public Map<Real> {
 public:
  explicit LayerNorm(const NormWeights& weights);

  MatrixOf<Real> operator()(const MatrixOf<Real>& x) const override;
  std::unique_ptr<LinearOperator<Real>> linearize(
      const MatrixOf<Real>& x) const override;

 private:
  class Jacobian;
  struct State;

  State state_at(const MatrixOf<Real>& x) const;

  bool centred_;
  Real epsilon_;
  VectorOf<Real> gain_, bias_;
};

}  // namespace lipscope
