#pragma once

#include <vector>

#include "lipscope/core/gemm.h"

namespace lipscope {

using FloatMatrix = MatrixOf<float>;

/// The factor L of W_OW_Oᵀ = LLᵀ as products in f32 read it: it is lower
/// triangular, and in bands of columns what stands above the triangle is not
/// multiplied.
///
/// Full precision of f32 (core/gemm.h): sums of p products err by at most
/// γ'‖X‖_F‖Y‖_F in the Frobenius norm, γ' = 1.1(p + 32)2⁻²⁴, and what is cast
/// to f32 by 2⁻²⁴ of its size, so that
///
///   ‖fl(LᵀY) − LᵀY‖_F ≤ (γ' + 2⁻²³)|L|_F ‖Y‖_F,
///   ‖fl(LᵀTL) − LᵀTL‖_F ≤ κ‖T‖_F,  κ = (γ' + 2⁻²³)|L|_F(2‖L‖ + γ'|L|_F) +
///                                      2⁻²³‖L‖²
///
/// where Y is of f32 already and T is cast. Underflow is the caller's.
class Triangle {
 public:
  explicit Triangle(const Matrix& l);

  /// ‖LᵀTL‖_F.
  double frobenius_after(const FloatMatrix& t) const;
  /// ‖LᵀY‖_F² for any columns Y; `room` is scratch of the caller.
  double squares_after(const ConstView<float>& y, FloatMatrix& room) const;

  double norm() const { return norm_; }  ///< ‖L‖₂ from above
  /// Of frobenius_after, as a share of ‖T‖_F: κ.
  double error() const { return error_; }
  /// Of squares_after, the norm, as a share of ‖Y‖_F.
  double last_error() const { return last_error_; }

 private:
  struct Band {
    Index first = 0;
    FloatMatrix numbers;
    RightFactor<float> factor;
  };
  Index size_;
  std::vector<Band> bands_;
  double norm_ = 0.0, error_ = 0.0, last_error_ = 0.0;
};

/// Σ of squares of floats, in f64.
double sum_of_squares(const ConstView<float>& m);

}  // namespace lipscope
