#pragma once

#include "lipscope/core/matrix.h"

/// Norms from above, in f64, that a proof may rest on.
///
/// The proof of λ_max(G) ≤ t is a Cholesky factorisation: if it runs through on
/// tI − G in floating point, then
///
///   λ_max(G) ≤ t + c tr(tI − G),   c = γ/(1 − γ), γ = (2n + 8)u/(1 − (2n +
///   8)u)
///
/// with u = 2⁻⁵³: the factor R that was found has |RᵀR − (tI − G)| ≤ γ|Rᵀ||R|
/// entry by entry, whatever the order of the sums [Higham02; Rump06], and
/// RᵀR ⪰ 0. How t was guessed does not matter. γ has room for a
/// reciprocal in place of a division.
namespace lipscope {

/// λ_max(G) from above, for a symmetric G (one triangle is proved) that
/// stands for a matrix within `error` of it in the 2-norm. 0 at least. Where
/// nothing better can be proved it is the largest absolute row sum.
double eigenvalue_above(const Matrix& g, double error = 0.0);

/// The same for a large G, on several threads (0: all cores), and within 1e-5
/// or so wherever Lanczos iteration finds λ_max. Both triangles of G are given;
/// the lower one is the place of the factor.
double large_eigenvalue_above(Matrix g, double error, int threads);

/// ‖S‖₂, and so λ_max of a symmetric S, that stands for a matrix within `error`
/// of it: ‖SᵀS‖_F^{1/2}, a product of S alone. That is above by a factor of at
/// most rank^{1/4}, and by far less where one eigenvalue leads.
double power_eigenvalue_above(const Matrix& s, double error = 0.0);

/// A Gram matrix, and how far it is from the exact one in the 2-norm: forming
/// sums of p products errs by at most p u/(1 − p u) ‖W‖_F² [Higham02].
struct Gram {
  Matrix g;
  double error = 0.0;
  double size = 0.0;  ///< ‖g‖_F
};
Gram gram_of_columns(const Matrix& w);  ///< WᵀW
Gram gram_of_rows(const Matrix& w);     ///< WWᵀ

/// ‖W‖₂, from the smaller of WᵀW and WWᵀ. Without columns or rows it is 0.
double weight_norm_above(const Matrix& w);

/// `guess`, above 0, where one factorisation proves that ‖W‖₂ is at most that;
/// what weight_norm_above(w) finds otherwise. Where many singular values stand
/// close together at the top, as in matrices that are kept at a norm, the
/// latter may be above by some 0.5 %.
double guessed_norm_above(const Matrix& w, double guess);

/// ‖W‖₂ as ‖(WᵀW)²‖_F^{1/4}: quicker, and above by at most rank^{1/8}.
double power_norm_above(const Matrix& w);

/// F with FFᵀ ⪰ G for the exact Gram matrix G: in ‖X Y‖² = ‖Xᵀ(YYᵀ)X‖-like
/// forms F may stand in place of the long factor. The Cholesky factor of
/// G + δI, δ = error + c tr(G) (1 + …) covering what rounding did.
Matrix factor_above(const Gram& gram);

/// That δ for a matrix of n rows within `error` of the exact one, from its
/// trace with n·error: Cholesky finds F with FFᵀ = G + δI + E, ‖E‖ ≤ c tr(G +
/// δI), and δ covers E, the error of G, and the rounding of the sum.
double factor_shift(Index n, double trace, double error);

/// ‖X Yᵀ‖₂ for X [m×k] and Y [n×k] with k small, never forming the [m×n]
/// product: ‖X Yᵀ‖² = λ_max(FᵀYᵀY F) for FFᵀ = XᵀX.
double product_norm_above(const Matrix& x, const Matrix& y);

/// ‖N‖₂ for a matrix of numbers ≥ 0: ‖N‖² ≤ max_i (NᵀN v)_i/v_i for every v > 0
/// (Collatz–Wielandt). A few power steps make v good.
double nonnegative_norm_above(const Matrix& n);

double length_above(const Vector& v);  ///< |v|₂
double longest_row(const Matrix& x);   ///< max_i |x_i|₂, from above

/// max_i Σ_j |W_ij|, what a column vector's largest entry is multiplied by;
/// transpose for tokens, which are rows.
double row_sum_above(const Matrix& w);

}  // namespace lipscope
