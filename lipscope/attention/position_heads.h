#pragma once

#include "lipscope/operators/map.h"

namespace lipscope {

/// Heads that look by distance alone: what they see of a token does not depend
/// on any token, so that the map is linear. Distances count backwards, and
/// ahead of the sequence there are empty tokens, which are zero:
///
///   y_i = [c_h Σ_{t=0}^{min(i, T−1)} p_th x_{i−t} V_h]_h,   Σ_t p_th ≤ 1, p ≥
///   0
///
/// A head is a convolution with weights that sum to at most one: it is
/// 1-Lipschitz in the 2-norm and in the token norm times c_h‖V_h‖.
struct PositionHeads {
  Matrix weights;  ///< p [T×H]
  Matrix value;    ///< V_h side by side [d×H·k]
  Vector share;    ///< c [H]
  Index width = 0;  ///< of an output token, ≥ H·k; coordinates beyond H·k are 0

  Index heads() const { return weights.cols(); }
  Index head_width() const { return value.cols() / heads(); }
};

/// Throws std::invalid_argument, with the numbers, unless the shapes fit, every
/// number is finite, and weights and shares are at least 0.
void require_sound(const PositionHeads& heads);

/// The heads on `sequences` sequences of equal length, one under another.
template <class Real>
class PositionHeadsMap final : public Map<Real> {
 public:
  explicit PositionHeadsMap(const PositionHeads& heads, Index sequences = 1,
                            int threads = 0);

  MatrixOf<Real> operator()(const MatrixOf<Real>& x) const override;
  std::unique_ptr<LinearOperator<Real>> linearize(
      const MatrixOf<Real>& x) const override;

 private:
  class Jacobian;

  MatrixOf<Real> transposed_at(const MatrixOf<Real>& gy) const;
  // task(h, where head h of one sequence stands in all values) in parallel
  template <class Task>
  void for_heads(Index rows, const Task& task) const;

  MatrixOf<Real> value_;    // c_h V_h [d×H·k]
  MatrixOf<Real> weights_;  // p [T×H]
  Index width_, sequences_;
  int threads_;
};

}  // namespace lipscope
