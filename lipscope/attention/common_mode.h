#pragma once

#include <vector>

#include "lipscope/core/gemm.h"
#include "lipscope/operators/common_shift.h"
#include "lipscope/operators/map.h"

namespace lipscope {

/// What a layer does to a shift of all tokens at once, u ↦ mean over the tokens
/// of dy when every dx_j = u. With softmax weights the keys' part is nothing
/// (it moves whole rows of scores), and per head
///
///   u ↦ (u W_Q C + u W_V) W_O,
///
/// C as TiledHead::mean_covariance says. One block of d unknowns for each
/// sequence, whatever its length: a step with it costs next to nothing beside
/// one with the Jacobian, and attention often stretches such a shift most.
template <class Real>
class CommonMode final : public LinearOperator<Real> {
 public:
  /// What a layer multiplies with, borrowed: the projections of all heads side
  /// by side, W_Q [d×H·k] first and W_V [d×H·w] last, as they stand and
  /// transposed; and the same of W_O [H·w×e], or nothing.
  struct Factors {
    const RightFactor<Real>*project, *unproject, *mix, *unmix;
    Index queries, values;  ///< H·k and H·w
  };

  /// C [k×w] for each head of each sequence, or none at all where the queries'
  /// part is left out.
  CommonMode(Factors factors, std::vector<MatrixOf<Real>> covariances,
             Index sequences, int threads);

  Index rows() const override;
  Index cols() const override;
  VectorOf<Real> apply(const VectorOf<Real>& v) const override;
  VectorOf<Real> apply_adjoint(const VectorOf<Real>& u) const override;

 private:
  Factors factors_;
  std::vector<MatrixOf<Real>> covariances_;
  Index sequences_;
  int threads_;
};

/// What MultiHeadAttention::common_shift says, of the attention that reads the
/// input of f itself (see first_map): of attention alone, behind a residual or
/// under a norm. Where f begins with something else, nothing is known. Borrows
/// f, which must outlive what is returned and what that makes.
template <class Real>
CommonShiftAt<Real> common_shift_of(const Map<Real>& f);

}  // namespace lipscope
