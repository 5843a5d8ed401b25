#pragma once

#include "lipscope/attention/multi_head.h"
#include "lipscope/operators/norm.h"

namespace lipscope {

/// Jacobians with more rows than this are not swept row by row.
constexpr Index most_swept_rows = 256;

/// How many tokens token_norm tries one by one. In the inf-norm beyond
/// most_swept_rows, where each number is a token, all of them would be n·d
/// products.
constexpr Index tokens_swept(Norm norm) { return norm == Norm::inf ? 8 : 64; }

/// ‖J(x)‖ as an ascent sees it: from below, and how it changes with x.
struct Steepness {
  double value = 0.0;  ///< ⟨u, J(x) v⟩ for the directions found
  Matrix gradient;     ///< ∇_x ⟨u, J(x) v⟩ [n×d]
};

/// ‖J(x)‖ in the norm two, inf or token, with its gradient. In each of them
///
///   ‖J‖ = max ⟨u, J v⟩ over u and v in sets that do not depend on x,
///
/// so that at the best pair the gradient is that of ⟨u, J(x) v⟩ with u and v
/// held. A maximum of smooth functions has its kinks in valleys: an ascent does
/// not come to rest on them.
///
///   2      the top singular pair: dense where n·d is small, otherwise by
///          Golub–Kahan, in f32 where it is large, from the last v
///   inf    u = e_r for the largest row sum, v its signs; the row is held, and
///          looked for again now and then. Beyond most_swept_rows rows, which
///          each take a product, as in the token norm with a number for a token
///   token  alternating from the last v, see token_norm; where n·d is small,
///          from all starts again now and then
///
/// It remembers where it was: one after the other, not from several threads.
class Objective final {
 public:
  Objective(const AttentionWeights& weights, const AttentionOptions& options,
            Norm norm, std::uint64_t seed);

  /// 0 where the tokens are too large for f64 (attention/settled_scores.h).
  Steepness operator()(const Matrix& x);

  /// Forgets the directions of the last input.
  void restart();

 private:
  Steepness steepness(const Matrix& x);
  template <class Real>
  Steepness spectral(const MultiHeadAttention<Real>& f, const Matrix& x);
  Steepness dense(const Matrix& x);
  Steepness row_sum(const Matrix& x);
  Steepness token(const Matrix& x, Index tokens);

  Norm norm_;
  std::uint64_t seed_;
  int threads_;
  MultiHeadAttention<float> f32_;
  MultiHeadAttention<double> f64_;
  Vector last_;        // v
  Index row_ = 0;      // of the inf-norm
  int held_ = 0;       // how many times it, or v, was used
  int evaluated_ = 0;  // since the restart
};

}  // namespace lipscope
