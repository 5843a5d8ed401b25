#pragma once

#include <optional>
#include <vector>

#include "lipscope/attention/weights.h"

/// One head on its own features, whatever kind it is: scores are always inner
/// products s_ij = ⟨q_i, k_j⟩, and the kinds differ only in how q, k and v are
/// made of the tokens (see l2.h).
///
///   S = q kᵀ [n×n],  P = softmax(S),  y = P v [n×w]
///
/// Written for reading: whole matrices, one line a formula. It is the reference
/// that the fast one in tiled_head.h is tested against.
namespace lipscope {

/// How scores become weights: the softmax of what a row sees, or, if there is a
/// shift b, σ(s + b) entry by entry.
struct Weighting {
  Mask mask = Mask::none;
  std::optional<double> sigmoid_shift = {};
  /// log w_j, added to the scores of key j: P_ij ∝ w_j e^{s_ij}; empty: none.
  /// Not with a shift.
  Vector log_mass = {};
  /// Row i sees the first seen[i] tokens, whatever the mask; empty: as the mask
  /// says. Not with a shift.
  std::vector<Index> seen = {};
  /// Added to s_ij: entry j − i + n − 1; empty: nothing. Not with a shift.
  Vector by_distance = {};

  /// What row i sees of n tokens.
  TokenRange visible(Index i, Index n) const {
    return seen.empty() ? lipscope::visible(mask, i, n)
                        : TokenRange{0, seen[i]};
  }
};

/// What a head compares (q, k) and mixes (v), row for token; also their
/// tangents and cotangents.
template <class Real>
struct HeadFeatures {
  MatrixOf<Real> q, k, v;
};

/// A head at a point: its features and the weights it gives them.
template <class Real>
struct HeadState {
  HeadFeatures<Real> at;
  MatrixOf<Real> p;  ///< [n×n]; rows of a softmax sum to one
  Weighting weighting;
};

template <class Real>
HeadState<Real> head_state(HeadFeatures<Real> at, Weighting weighting);

template <class Real>
MatrixOf<Real> head_forward(const HeadState<Real>& head);

/// dy, when the features move by d.
template <class Real>
MatrixOf<Real> head_tangent(const HeadState<Real>& head,
                            const HeadFeatures<Real>& d);

/// The lines of head_tangent, transposed and in reverse.
template <class Real>
HeadFeatures<Real> head_cotangent(const HeadState<Real>& head,
                                  const MatrixOf<Real>& gy);

/// Gradients of ⟨gy, dy⟩, dy = head_tangent(head, d), by the features and by
/// their tangents.
template <class Real>
struct TangentCotangent {
  HeadFeatures<Real> at, d;
};

/// The reverse pass over head_tangent. Where head_cotangent answers how dy
/// depends on d alone, this also says how it depends on the point: second
/// derivatives of the head, contracted with d and gy.
template <class Real>
TangentCotangent<Real> head_tangent_cotangent(const HeadState<Real>& head,
                                              const HeadFeatures<Real>& d,
                                              const MatrixOf<Real>& gy);

}  // namespace lipscope
