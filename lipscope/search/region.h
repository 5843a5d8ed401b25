#pragma once

#include <limits>
#include <string>

#include "lipscope/attention/layer_norm.h"

namespace lipscope {

/// Where tokens may be, token by token: x = zΓ + β with |z| ≤ ρ and, after
/// LayerNorm, mean(z) = 0.
///
/// A ball of radius R is Γ = I, β = 0, ρ = R; all of space has ρ = ∞; what a
/// norm layer lets through is its Γ and β with ρ = √D. Convex in all cases, and
/// searched in the coordinates z, where the nearest point is a scaling.
struct Region {
  double radius = std::numeric_limits<double>::infinity();  ///< ρ, of z
  Vector gain, bias;     ///< Γ's diagonal and β; empty: I and 0
  bool centred = false;  ///< mean(z) = 0

  bool bounded() const;
  std::string scope() const;  ///< "everywhere", "ball of radius 2", …
};

Region everywhere();
Region ball(double radius);
Region after_norm(const NormWeights& norm);

/// x = zΓ + β, row by row.
Matrix tokens_of(const Region& region, const Matrix& z);
/// A z whose tokens are x, or as near as the region comes to them; z = 0 where
/// the gain is 0.
Matrix coordinates_of(const Region& region, const Matrix& x);
/// Its adjoint: the gradient by z of what has the gradient gx by x.
Matrix pulled_back(const Region& region, const Matrix& gx);
/// The point of the region nearest to z, in the coordinates z.
Matrix nearest(const Region& region, Matrix z);

}  // namespace lipscope
