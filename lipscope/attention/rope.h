#pragma once

#include "lipscope/attention/head.h"

namespace lipscope {

/// Rotary position embedding [Su21], in Hugging Face's "rotate half" layout:
/// feature i of a head of width k makes a plane with feature i + k/2, and at
/// position p the plane is turned by the angle p θ^(−2i/k),
///
///   z_i       ↦ z_i cos − z_{i+k/2} sin
///   z_{i+k/2} ↦ z_i sin + z_{i+k/2} cos.
///
/// Rows are positions 0 … n−1. q and k are turned, v is not. The map is
/// orthogonal: its adjoint turns back. Angles and their cosines are taken in
/// double.
template <class Real>
class Rope {
 public:
  Rope(Index n, Index width, double theta);

  void rotate(HeadFeatures<Real>& f) const;    ///< also of tangents
  void unrotate(HeadFeatures<Real>& f) const;  ///< of cotangents

 private:
  MatrixOf<Real> cos_, sin_;  // [n×k/2]
};

/// Throws std::invalid_argument unless heads of this width and kind can be
/// rotated: an even width, a positive base, not tied L2.
void require_rotatable(double theta, Index width, Kind kind);

}  // namespace lipscope
