#pragma once

#include <cstdint>
#include <optional>

#include "lipscope/control/readout.h"
#include "lipscope/operators/map.h"

namespace lipscope {

struct AttackOptions {
  int targets = 5;      ///< characters tried, the nearest to first order
  int restarts = 8;     ///< more starts, on the sphere of the best change
  int iterations = 30;  ///< gradients of each start
  std::uint64_t seed = 0;
};

/// What is attacked: the prediction of row `row` of map(x). It borrows both.
struct Attacked {
  const Map<double>& map;
  const Readout& readout;
  Index row = 0;
};

/// A change of the input that does change the prediction.
struct Attack {
  double distance = 0.0;  ///< ‖change‖_F
  Matrix changed;         ///< the input that was changed, [n×d]
  Index character = 0;    ///< what is predicted there
  Index evaluations = 0;  ///< of the map, each gradient counted as one
};

/// Looks for the smallest change δ of x after which another character than a is
/// predicted, with c(δ) = z_b − z_a for the character b of the largest logit
/// but a's, and g its gradient.
///
/// 1. Approach. For each target b the point of the linearised border that is
///    nearest to x, δ ← g (⟨g, δ⟩ − c)/|g|², again and again [HasoferLind74;
///    MoosaviDezfooli16], until the prediction changes.
/// 2. Walk. A change δ of size r goes along the sphere of radius r up the
///    gradient, δ ← r u/|u| with u = (1 − s)δ/r + s g/|g|; s is halved where c
///    would fall, and doubled where it rises. Where the prediction has changed,
///    δ is shrunk along its ray to where it only just changes, and r with it.
///    It ends where g points along δ: no smaller change is near.
/// 3. Restarts. Walks on the sphere a little smaller than the best change, from
///    random changes of all tokens and of one, from what moves the state most
///    to first order, and from the best change with noise: projected gradient
///    ascent that has to come nearer to succeed.
///
/// What is returned was evaluated, in f64: from above it is a fact, however far
/// the nearest change may be. Nothing where none was found.
std::optional<Attack> attack(const Attacked& attacked, const Matrix& x,
                             const AttackOptions& options = {});

}  // namespace lipscope
