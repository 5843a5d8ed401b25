#pragma once

#include <optional>

#include "lipscope/attention/head.h"

namespace lipscope {

/// How fast the planes of a head turn. Plane i of m turns by
/// f_i = θ^(−i/m)/factor from one position to the next; where there are `slow`
/// planes, only those are divided by the factor.
struct Rotary {
  /// Planes that make their turn within the context a model was first trained
  /// with keep their speed, slow ones are divided by the factor, and between
  /// the two it is passed over evenly [Grattafiori24, "llama3"]:
  ///
  ///   f_i ↦ (1 − t) f_i/factor + t f_i,  t = (turns − slow)/(fast − slow)
  ///
  /// cut to [0, 1], with turns = context · f_i/2π.
  struct SlowPlanes {
    double context = 8192.0;
    double slow = 1.0, fast = 4.0;  ///< turns within the context

    bool operator==(const SlowPlanes&) const = default;
  };

  double theta = 10'000.0;  ///< θ
  Index width = 0;          ///< 2m, the features that turn; 0: the whole head
  double factor = 1.0;      ///< positions are this much nearer each other
  std::optional<SlowPlanes> slow = {};

  bool operator==(const Rotary&) const = default;
};

/// f_i of the planes of a head of this width.
Vector frequencies(const Rotary& rotary, Index head_width);

/// Rotary position embedding [Su21], in Hugging Face's "rotate half" layout: of
/// the 2m features that turn, feature i makes a plane with feature i + m, and
/// at position p the plane is turned by the angle p f_i,
///
///   z_i     ↦ z_i cos − z_{i+m} sin
///   z_{i+m} ↦ z_i sin + z_{i+m} cos.
///
/// The others stay as they are. Rows are positions 0 … n−1. q and k are turned,
/// v is not. The map is orthogonal: its adjoint turns back. Angles and their
/// cosines are taken in double.
template <class Real>
class Rope {
 public:
  Rope(Index n, Index head_width, const Rotary& rotary);

  void rotate(HeadFeatures<Real>& f) const;    ///< also of tangents
  void unrotate(HeadFeatures<Real>& f) const;  ///< of cotangents
  /// Rows that all belong to one position.
  void unrotate_at(Index position, MatrixOf<Real>& z) const;

 private:
  MatrixOf<Real> cos_, sin_;  // [n×m]
};

/// Throws std::invalid_argument unless heads of this width and kind can be
/// rotated: an even width, positive numbers, not tied L2.
void require_rotatable(const Rotary& rotary, Index head_width, Kind kind);

}  // namespace lipscope
