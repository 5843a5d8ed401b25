#pragma once

#include <vector>

#include "lipscope/attention/head_weights.h"
#include "lipscope/theory/bound.h"

/// Tied L2 attention as a normalised Gaussian kernel: a bound in the 2-norm,
/// everywhere, that grows like n^{1/4} √ln n and takes the norms of whole
/// matrices. With y = xW_Q k^{-1/4}, E_ij = exp(−|y_i − y_j|²) over the pairs
/// that are seen, Z_i = Σ_j E_ij and P_ij = E_ij/Z_i,
///
///   Lip₂(F) ≤ Φ(n) · k^{-1/2}‖[t_h W_Q,h]‖ ‖[U_h/t_h]‖,
///   U_h = W_Q,hᵀ W_V,h W_O,h on top of one another, any t_h > 0,
///   Φ(n) = 2p + min(√C + 2√(p D), √K),
///
/// p the lemma of [Kim21] (kim21.h), C the largest column sum of P, D that of
/// P_ij|y_i − y_j|², K what positive definiteness says of both together:
///
///   C ≤ min(√(cn), (n + 1)/2),  D ≤ m g(min(√(cm)/m, t*)),  m = n − 1,
///   g(t) = t ln(1/t − 1), t* = 0.2178… where g is largest,
///   K ≤ √(1 + τ²/2) √(cn) max_z λ(z)/√z,  λ(z) = 1 + 4s(z)/τ, any τ > 0,
///   s(z) = (m/z) t ln(1/t), t = min((z − 1)/m, 1/e),  1 ≤ z ≤ n,
///
/// with c = 1, or 2 under a causal mask, where max_z λ/√z is the root of max_z
/// λ/z · max_z λ. Under a window c = 2, n is the largest number of tokens that
/// see one, and p and s are those of the most that one sees. Not for padding,
/// which does not see itself. K is the smaller from a few tokens on: at n = 64
/// Φ is 11.67 with it and 19.35 without.
///
/// Proof. The map is Y ↦ [t_1 g(Y_1/t_1), …] between the linear maps [t_h
/// W_Q,h] k^{-1/4} and [U_h/t_h] k^{-1/4}: heads stand side by side, so that
/// what is between them has the constant of one. For one (l2_diagonal_apart.h)
///
///   dg_i = 2 dy_i Cov_i + Σ_j P_ij dy_j + 2 Σ_j P_ij⟨dy_j, y_i−y_j⟩(y_j−ȳ_i).
///
/// The first is at most 2p. The second is ‖P‖ ≤ √C (Schur: rows sum to 1). The
/// third, by Cauchy–Schwarz in each row, is at most
/// 2 (Σ_jP_ij|y_i−y_j|²|dy_j|²)^{1/2} (Σ_jP_ij|y_j−ȳ_i|²)^{1/2}, where the last
/// root is at most √p; squares summed over i leave D.
///
/// C: a token is nearest to itself, so that Z_i ≥ 1 + E_ij for i ≠ j and P_ij ≤
/// ½. And the kernel is positive definite, E_ij = ⟨f_i, f_j⟩ with |f_i| = 1:
///
///   (Σ_i P_ij)² = ⟨Σ_i f_i/Z_i, f_j⟩² ≤ |Σ_i f_i/Z_i|² = Σ_{i,l}E_il/(Z_iZ_l),
///
/// over all i that see j. Without a mask 1/(Z_iZ_l) ≤ (1/Z_i² + 1/Z_l²)/2 makes
/// that at most Σ_i 1/Z_i ≤ n. Under a causal mask it is at most twice the sum
/// over l ≤ i, hence 2Σ_i (1/Z_i) Σ_{l≤i}E_il = 2n, since Z_l ≥ 1. The same
/// without i = j has m for n.
///
/// Under a window the i that see j are some up to j and some after it. Two of
/// the one sort see each other, so that what was said without a mask holds for
/// each sort by itself (Σ_lE_il over the sort of i is at most Z_i): a of the
/// one and b of the other sum to at most √a + √b ≤ √(2(a + b)). Under a causal
/// window they are j and some after it, the later of two sees the earlier, and
/// the proof is that without a window. Columns that fewer tokens see have the
/// same bounds: numbers P_ij = 0 may be added to them.
///
/// D: for i ≠ j, P_ij ≤ E_ij/(1 + E_ij), so |y_i−y_j|² = −ln E_ij ≤ ln(1/P_ij −
/// 1) and P_ij|y_i−y_j|² ≤ g(P_ij). g is concave, and so is at most g(t) at
/// t = min(mean, t*) on the average over m numbers of that mean.
///
/// K: the second and the third together are r_i = Σ_j P_ij(dy_j + 2⟨dy_j,
/// δ_ij⟩b_ij) with δ_ij = y_i − y_j, b_ij = y_j − ȳ_i. For a unit vector c, by
/// Cauchy–Schwarz in the plane and then over j,
///
///   ⟨r_i, c⟩ ≤ Σ_j P_ij (1 + 4⟨c, b_ij⟩²/τ)^{1/2} (|dy_j|² + τ⟨dy_j,
///              δ_ij⟩²)^{1/2}
///   |r_i|² ≤ λ_i Σ_j P_ij (|dy_j|² + τ⟨dy_j, δ_ij⟩²),  λ_i = 1 + 4‖Cov_i‖/τ.
///
/// Summed over i, the share of token j, which moves along a unit vector e, is
/// at most K = Σ_i (λ_i/Z_i) E_ij(1 + τ⟨e, δ_ij⟩²). With f_j as above and ∂ its
/// derivative by y_j along e, ⟨f_i, ∂²f_j⟩ = E_ij(4⟨e, δ_ij⟩² − 2). So the
/// bracket is ⟨f_i, f_j + τk_j⟩, k_j = (∂²f_j + 2f_j)/4, where |∂²f_j|² = 12
/// (the fourth derivative of exp(−t²) at 0) and ⟨∂²f_j, f_j⟩ = −2 give |k_j|² =
/// ½ and ⟨f_j, k_j⟩ = 0:
///
///   K ≤ |Σ_i λ_i f_i/Z_i| √(1 + τ²/2).
///
/// The first factor is that of C with λ_i/Z_i in place of 1/Z_i: without a mask
/// its square is at most Σ_i λ_i²/Z_i, and under a causal mask 2Σ_i λ_i max_l
/// λ_l/Z_l. And ‖Cov_i‖ ≤ Σ_j P_ij|δ_ij|² = Σ_j E_ij ln(1/E_ij)/Z_i ≤ s(Z_i),
/// since t ln(1/t) is concave and largest at 1/e.
///
/// The rate is that of ‖P‖: m tokens at one place with m² around them, at
/// e^{-r²} = 1/m and apart from one another, have ‖P‖ ≈ √m/3.
namespace lipscope {

extern const Statement l2_kernel_statement;

Magnitude l2_kernel(Index n, const Mask& mask);  ///< Φ(n)
/// √C + 2√(p D) and √K.
Magnitude l2_kernel_by_columns(Index n, const Mask& mask);
Magnitude l2_kernel_by_features(Index n, const Mask& mask);

/// ‖[t_h W_Q,h]‖ and ‖[U_h/t_h]‖ of these heads, from above, where t_h makes
/// the two Frobenius norms of a head alike. Where heads have no output
/// (concatenated) the U_h stand one by one down the diagonal.
struct L2PathNorms {
  double query = 0.0, path = 0.0;
  std::vector<double> balance;  ///< t_h
  Index k = 1;
};
L2PathNorms l2_path_norms(const std::vector<HeadWeights>& heads);
/// k^{-1/2} times the product of the two.
Magnitude l2_path_factor(const L2PathNorms& norms);

}  // namespace lipscope
