#pragma once

#include "lipscope/attention/weights.h"

namespace lipscope {

/// q/k-norm: RMS norms of the queries and the keys, ahead of their rotation,
///
///   z ↦ γ ∘ z/√(|z|²/D + ε),
///
/// with z the D = k features of one head (the gains are those of every head
/// alike), or the D = H·k features of all heads of a token.
struct QueryKeyNorm {
  Vector query_gain;  ///< [k], or [H·k]
  Vector key_gain;    ///< [k], or [G·k]
  double epsilon = 1e-6;
  bool over_heads = false;
};

/// Throws std::invalid_argument unless so many chosen heads of these weights
/// can be normed: not those of a tied kind, and where the norm is one of all
/// heads, all of them.
void require_normable(const QueryKeyNorm& norm, const AttentionWeights& weights,
                      Kind kind, Index chosen);

/// The norm of z, which stand side by side in columns [first, first +
/// blocks·width) of a matrix, at a point. Each block is normed by itself.
template <class Real>
class BlockNorm {
 public:
  struct Place {
    Index first = 0, width = 0, blocks = 1;
  };

  /// Norms these columns of `projected`; gain [blocks·width].
  BlockNorm(MatrixOf<Real>& projected, const Place& place, VectorOf<Real> gain,
            Real epsilon);

  /// Tangents of z in the rows of `d`, which are those from `from` on of the
  /// point: dy = γ ∘ (dz − u⟨u, dz⟩/D)s, with s = 1/√(|z|²/D + ε), u = s z.
  void tangent(MatrixOf<Real>& d, Index row, Index from, Index rows) const;

  /// The transpose of `tangent`.
  void cotangent(MatrixOf<Real>& g, Index row, Index from, Index rows) const;

  /// Adds to g the gradient by z of ⟨gd, tangent(d)⟩, for all rows: with w = γ
  /// ∘ gd,
  ///
  ///   s²(−u⟨w, d⟩ − d⟨w, u⟩ − w⟨u, d⟩ + 3u⟨u, d⟩⟨w, u⟩/D)/D.
  void add_bend(const MatrixOf<Real>& d, const MatrixOf<Real>& gd,
                MatrixOf<Real>& g) const;

  const Place& place() const { return place_; }
  const VectorOf<Real>& gain() const { return gain_; }      ///< γ
  const MatrixOf<Real>& direction() const { return u_; }    ///< u, row by row
  const MatrixOf<Real>& shrink() const { return shrink_; }  ///< s, [n×blocks]

 private:
  Place place_;
  VectorOf<Real> gain_;
  MatrixOf<Real> u_;       // [n×blocks·width]
  MatrixOf<Real> shrink_;  // s, [n×blocks]
};

}  // namespace lipscope
