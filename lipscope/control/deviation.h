#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lipscope/model/stack.h"
#include "lipscope/theory/magnitude.h"

namespace lipscope {

/// The states of a model along its layers at one input: what a bound around
/// them takes of them, for the first 1, 2, … tokens.
struct StatesAlong {
  struct Layer {
    Vector attended;  ///< max |x_j| over these tokens of what attention reads
    Vector fed;       ///< the same of what the MLP reads
    /// min of the variance (mean square) at the two norms; empty without them.
    Vector attention_norm, mlp_norm;
  };
  std::vector<Layer> layers;
  Vector last_norm;  ///< as above
  Matrix last;       ///< hidden states after the last layer and its norm
};

/// How far a change of the input can carry the last hidden state of a model,
/// from above, near a given input. Constants are those of each part over where
/// a change of this size can take its input, and no further:
///
///   norm       max|γ|/√(σ² + ε) with σ ≥ σ_j − ρ/√D, since σ(x) is
///              1/√D-Lipschitz
///   attention  over tokens of norm at most max|x_j| + ρ (l2: everywhere)
///   MLP        ‖W_up‖ L_act ‖W_down‖
///
/// where ρ bounds how far any token of the part's input is from where it is.
/// That is carried along in two norms at once, ‖·‖_F and the largest token's:
/// what stands at a token alone multiplies both, attention has a constant in
/// each and one from the first to the second (theory/attention_constants.h).
/// The balls around the states are convex, so that a bound on the Jacobian over
/// them bounds the change.
class Deviation {
 public:
  /// Of a stack without rotary positions and gated MLPs.
  explicit Deviation(const Stack& stack);
  ~Deviation();
  Deviation(Deviation&&) noexcept;

  StatesAlong at(const Matrix& x) const;

  /// |change of the n-th token's last state|/r, from above, for all changes of
  /// the first n tokens with ‖·‖_F ≤ r; under the causal mask the others do not
  /// matter. Nothing where nothing is proved: untied L2 attention, or where r
  /// is so large that numbers leave double.
  std::optional<Magnitude> gain(const StatesAlong& states, Index n,
                                double r) const;

  /// The bounds on attention that it rests on, or empty.
  std::string name() const;

 private:
  struct Layer;
  std::vector<Layer> layers_;
  std::optional<NormWeights> last_norm_;
};

}  // namespace lipscope
