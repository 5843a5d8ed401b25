#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lipscope/model/stack.h"
#include "lipscope/theory/magnitude.h"
#include "lipscope/theory/mlp_bound.h"

namespace lipscope {

/// The states of a model along its layers at one input: what a bound around
/// them takes of them, for the first 1, 2, … tokens.
struct StatesAlong {
  struct Layer {
    Vector attended;  ///< max |x_j| over these tokens of what attention reads
    Vector fed;       ///< the same of what the MLP reads
    /// min of the variance (mean square) at the norms; empty without them.
    Vector attention_norm, mlp_norm;
    Vector attention_output_norm, mlp_output_norm;
  };
  std::vector<Layer> layers;
  Vector last_norm;  ///< as above
  Vector transform_fed, transform_norm;
  /// What the head reads: hidden states after the last layer, its norm, and
  /// what stands between that and the head.
  Matrix last;
};

/// By how much a part of a layer multiplies the change of a token, at most:
/// the largest token's change that it makes over the largest that it reads.
struct PartGain {
  Index layer = 0;     ///< what follows the layers has their number
  std::string part;    ///< "attention_norm", "attention", "mlp_norm", "mlp",
                       ///< "attention_output_norm", "mlp_output_norm",
                       ///< "last_norm", "transform", "transform_norm"
  double log10 = 0.0;  ///< without the residual around it
};

/// How far a change of the input can carry the last hidden state of a model,
/// from above, near a given input. Constants are those of each part over where
/// a change of this size can take its input, and no further:
///
///   norm       max|γ|/√(σ² + ε) with σ ≥ σ_j − ρ/√D, since σ(x) is
///              1/√D-Lipschitz
///   attention  over tokens of norm at most max|x_j| + ρ (l2: everywhere)
///   MLP        ‖W_up‖ L_act ‖W_down‖; gated, over tokens of norm at most
///              max|x_j| + ρ
///
/// where ρ bounds how far any token of the part's input is from where it is.
/// That is carried along in two norms at once, ‖·‖_F and the largest token's:
/// what stands at a token alone multiplies both, attention has a constant in
/// each and one from the first to the second (theory/attention_constants.h).
/// The balls around the states are convex, so that a bound on the Jacobian over
/// them bounds the change. Layers may have any form of model/layer.h but
/// position heads and a residual that is not added whole.
class Deviation {
 public:
  explicit Deviation(const Stack& stack);
  ~Deviation();
  Deviation(Deviation&&) noexcept;

  StatesAlong at(const Matrix& x) const;

  /// |change of the n-th token's last state|/r, from above, for all changes of
  /// the first n tokens with ‖·‖_F ≤ r; under a causal mask the others do not
  /// matter. Under others n is the number of all tokens, and it holds for each
  /// of them. Nothing where nothing is proved: see unbounded(), or where r is
  /// so large that numbers leave double.
  std::optional<Magnitude> gain(const StatesAlong& states, Index n,
                                double r) const;

  /// Its parts, in the order of the model, as far as something is proved.
  std::vector<PartGain> parts(const StatesAlong& states, Index n,
                              double r) const;

  /// The bounds on attention that it rests on, or empty.
  std::string name() const;

  /// The first part of which nothing is proved, and why: "layer 0, attention:
  /// …"; empty where all have a bound.
  const std::string& unbounded() const { return unbounded_; }

 private:
  struct Layer;
  std::optional<Magnitude> follow(const StatesAlong& states, Index n, double r,
                                  std::vector<PartGain>* parts) const;

  std::vector<Layer> layers_;
  std::optional<NormWeights> last_norm_;
  std::optional<HeadTransform> transform_;
  MlpNorms transform_norms_;
  bool causal_ = true;
  std::string unbounded_;
};

}  // namespace lipscope
