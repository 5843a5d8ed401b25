#pragma once

#include <functional>
#include <vector>

#include "lipscope/theory/layer_at.h"

namespace lipscope {

/// Parts of the Gram matrix of a Jacobian between pairs of tokens, in the
/// coordinates of the heads.
///
/// Token j acts on token i by B_ij F [d×r] with
///
///   B_ij = [ P^h_ij U_j^h + P'^h_ij p_ij^hᵀ z_ij^h + δ_ij E_i^h ]_h   [d×H·w]
///
///   U_j^h = W_V^h S_j^{V,h},   p_ij^h = q_i^h (W_K^h S_j^{K,h})ᵀ,
///   z_ij^h = v_j^h − c_i^h,    E_i^h = W_Q^h S_i^{Q,h} C_i^h
///
/// in the notation of split_paths.h, heads side by side; F is W_O, or something
/// with FFᵀ ⪰ W_OW_Oᵀ. The Gram matrix of J has the parts G_ii' = FᵀT_ii'F,
/// T_ii' = Σ_j B_ijᵀB_i'j. No B_ij is formed: for heads h and g T_ii' has
///
///   (Σ_j P^h_ijP^g_i'j) W_V^hᵀW_V^g
///     + Σ_j ( P'^h_ijP'^g_i'j (p_ij^h·p_i'j^g) z_ij^h
///             + P^h_ijP'^g_i'j p_i'j^gU_j^h )ᵀ z_i'j^g
///     + Σ_j (P'^h_ij z_ij^h)ᵀ (P^g_i'j p_ij^hU_j^g)
///     + what has E, where j is i or i',
///
/// some 4n(H·w)² operations. Where queries and keys are their projections p_ij
/// is one vector p_i for all j, and the sums over j are one product
/// [H·w×n][n×H·w] and vectors.
///
/// Rounding. Let N_ij ≥ the Frobenius norms of the terms of B_ijF added up with
/// nothing cancelled, and S = ‖N‖. Every number of a term errs by a share of
/// its size: of P through the logits, which err by 8(d + 8)u(|x||W_Q| +
/// |b|)(|x||W_K| + |b|) (twice that is the share of P), of the others by at
/// most 10⁻⁹ of the size that they are given in N. With ε all these shares
/// together, those of LayerAt::allowance included, the J of the numbers is
/// within εS of the exact one, and slope_rounding (token_slopes.h); with a
/// share γ for sums of products, FᵀT_ii'F errs by at most γ Σ_j N_ijN_i'j,
/// which is γS² for all parts together in the 2-norm, and γ√n S² in Frobenius'.
class GramParts {
 public:
  GramParts(const LayerParts& layer, const LayerAt& at);

  /// F: W_O itself where it is no wider than high, else a square root of its
  /// Gram matrix; empty where there is no W_O.
  const Matrix& output() const { return output_; }

  /// S.
  double size() const { return size_; }
  /// γ, and ε + γ.
  struct Shares {
    double sums = 0.0, all = 0.0;
  };
  Shares shares() const;
  /// Whether products of these numbers stay within the range of double.
  bool moderate() const {
    constexpr double least = 1e-40, most = 1e100;
    return size_ > least && size_ < most && largest_ < most;
  }

  /// Makes what part() takes of each token, on several threads: once, ahead.
  void prepare();
  /// T_ii' [H·w×H·w] for any two tokens.
  Matrix part(Index i, Index other) const;
  /// The same, as rows [w×H·w] of one head after another: small enough to stay
  /// near while they are used.
  void each_head_of_part(
      Index i, Index other,
      const std::function<void(Index h, const Matrix& rows)>& use) const;

  // What parts are made of, once prepared.

  /// Whether neither p_ij nor U_j depends on j.
  bool one_pull() const { return !at_.sloped() && value_.size() == 1; }
  /// What the logits of token i say of the tokens j, for each head: p_ij [·×d],
  /// p_ijU_j [·×H·w] and p_ijW_Q [·×H·k]. Where p_ij does not depend on j there
  /// is one row.
  struct Pulls {
    std::vector<Matrix> pull, value, query;
  };
  const Pulls& pulls(Index i) const { return pulls_[i]; }
  /// E_iᵀU_i [H·w×H·w].
  const Matrix& own(Index i) const { return own_[i]; }
  /// UᵀU [H·w×H·w], where U_j does not depend on j.
  const Matrix& value_gram() const { return value_gram_[0]; }
  /// E_iᵀY from M = W_QᵀY [H·k×·].
  Matrix own_times(Index i, const Matrix& m) const;
  /// P'^h_ij z_ij^h of these tokens j, heads side by side [·×H·w].
  Matrix sloped_steps(Index i, const TokenRange& tokens) const;

 private:
  // For tokens i and i', with z' = P'z: z'_i and z'_i' of the tokens j that
  // both see [·×H·w], and for each head Σ_j P_ij z'_i'j and Σ_j P_i'j z'_ij
  // [H×H·w].
  struct ThroughKeys {
    Matrix left, right, mixed, its_mixed;
  };

  Index at_token(Index j) const { return l_.plain ? 0 : j; }
  auto step(Index h, Index i, Index j) const {  // z_ij^h
    return at_.v.row(j).segment(h * w_, w_) -
           centre_.row(i).segment(h * w_, w_);
  }
  Matrix queries_at_keys(Index i) const;
  Pulls pulls_of(Index i) const;
  Matrix pulled_own(Index i, Index other) const;
  double summed_sizes();
  double share_of_weights() const;
  TokenRange seen_by_both(Index i, Index other) const;
  ThroughKeys through_keys(Index i, Index other) const;
  Matrix through_bent_keys(Index i, Index h, Index other, Index g) const;

  const LayerParts& l_;
  const LayerAt& at_;
  Index n_, H_, w_, d_;
  Matrix output_;
  Matrix centre_, queries_;
  Matrix shared_key_, shared_query_;  // of q/k-norm over heads
  // U_j side by side [d×H·w] and their Gram matrices: one for all tokens, or
  // where values bend one for each
  std::vector<Matrix> value_, value_gram_;
  double size_ = 0.0, largest_ = 0.0;
  std::vector<Pulls> pulls_;  // of each token
  std::vector<Matrix> own_;   // E_iᵀU_i of each token [H·w×H·w]
  Matrix query_gram_;         // W_QᵀW_Q
};

}  // namespace lipscope
