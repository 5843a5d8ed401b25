#pragma once

#include "lipscope/attention/multi_head.h"
#include "lipscope/model/mlp.h"
#include "lipscope/operators/compose.h"
#include "lipscope/operators/norm.h"
#include "lipscope/theory/magnitude.h"
#include "lipscope/theory/mlp_bound.h"

/// Maps that are divided by their own Lipschitz bound, so that no two inputs
/// are moved apart: |f(X) − f(Y)| ≤ |X − Y| in the norm that is named.
namespace lipscope {

/// The largest factor that is sure to bring a map of this constant to at most
/// one: 1/L rounded down; 1 where L = 0, for a map that is constant already.
template <class Real>
Real contractive_factor(Magnitude lipschitz);

/// Contractive-L2 attention [Kim21]: tied L2 attention F divided by its bound
/// in the inf-norm (theory/kim21.h), which grows with the length n like log n:
///
///   f(X) = F(X)/L(n),   Lip_inf(F) ≤ L(n) on all of R^{n×d},  Lip_inf(f) ≤ 1.
///
/// L is rounded up and its reciprocal down: the constant of the map with the
/// factor that is used is at most one, and not one up to rounding. In the
/// 2-norm nothing is promised; the ratio of the two bounds may be above one.
template <class Real>
class ContractiveL2 final : public Map<Real> {
 public:
  /// With options.kind = Kind::l2; tokens do not weigh, and see what the mask
  /// says, which has no padding: with it there is no bound.
  ContractiveL2(const AttentionWeights& weights, AttentionOptions options);

  MatrixOf<Real> operator()(const MatrixOf<Real>& x) const override;
  std::unique_ptr<LinearOperator<Real>> linearize(
      const MatrixOf<Real>& x) const override;

  /// L(n), of the undivided map.
  Magnitude bound(Index n) const;

 private:
  Real factor(const MatrixOf<Real>& x) const;

  MultiHeadAttention<Real> attention_;
  Index sequences_, width_;
  Mask mask_;
  Magnitude weights_;  // what L(n) takes of them
};

/// The MLP divided by mlp_lipschitz: constant at most one in the same norm.
template <class Real>
MapPtr<Real> contractive_mlp(const MlpWeights& weights, Norm norm,
                             int threads = 0);

/// W, or where ‖W‖₂ is above the cap (> 0) a multiple of it with ‖·‖₂ ≤ cap,
/// proved as in theory/norms.h and less than a relative 1e-9 below what exact
/// arithmetic would give. Spectral normalisation is a cap of one.
Matrix spectral_cap(const Matrix& w, double cap);

}  // namespace lipscope
