#pragma once

#include <cstdint>
#include <optional>

#include "lipscope/operators/map.h"

namespace lipscope {

struct AttackOptions {
  int targets = 3;      ///< characters tried, the nearest by their margins
  int restarts = 1;     ///< more starts for the nearest, at random changes
  int iterations = 12;  ///< linearisations of each start
  std::uint64_t seed = 0;
};

/// A change of the input that does change the prediction.
struct Attack {
  double distance = 0.0;  ///< ‖change‖_F
  Matrix changed;         ///< the input that was changed, [n×d]
  Index character = 0;    ///< what is predicted there
  Index evaluations = 0;  ///< of the map, each linearisation counted as one
};

/// Looks for the smallest change of x after which the last token's logits
/// h W_head, h the last row of map(x), are largest elsewhere. For a character b
/// in place of a, with c = z_a − z_b and g its gradient at x + δ, the point of
/// the linearised border that is nearest to x
///
///   δ ← g (⟨g, δ⟩ − c)/|g|²
///
/// is taken again and again [HasoferLind74; MoosaviDezfooli16], a little
/// overshot; where the prediction has changed, δ is first shrunk to where it
/// just changes. What is returned was evaluated, in f64: from above it is a
/// fact, however far the nearest change may be. Nothing where none was found.
std::optional<Attack> attack(const Map<double>& map, const Matrix& head,
                             const Matrix& x,
                             const AttackOptions& options = {});

}  // namespace lipscope
