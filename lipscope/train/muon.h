#pragma once

#include "lipscope/train/layout.h"
#include "lipscope/train/training_options.h"

/// Muon [Jordan24]: a matrix moves by a step whose singular values are all near
/// 1, the nearest to an orthogonal matrix that its momentum gives. For a matrix
/// W with gradient g,
///
///   m ← βm + g,   d = g + βm (Nesterov) or m,   X = d/‖d‖_F,
///   five times  X ← aX + bAX + cA²X,  A = XXᵀ,
///   W ← (1 − rate λ)W − rate·scale·X  (by size: times ‖W‖_F/√rank as well)
///
/// with (a, b, c) = (3.4445, −4.7750, 2.0315): small singular values grow by a
/// in each of the five, and all that are not tiny end between 0.7 and 1.2. A
/// gradient of zeros and a momentum of zeros make no step.
namespace lipscope {

/// Whether Muon moves the tensor: a matrix whose name is not among by_adamw.
/// Tables, gains and biases are none.
bool moved_by_muon(const Layout::Tensor& tensor, const MuonOptions& options);

/// std::invalid_argument for options that make no sense, or that name what is
/// no matrix of the layout.
void require_valid(const MuonOptions& options, const Layout& layout);

struct MuonStep {
  double rate = 0.0;   ///< of this step
  double scale = 1.0;  ///< of gradients, as clipping says
  /// Tensors whose matrices move by steps in parts of their own size, the root
  /// mean square of their singular values: they are kept at norms far from 1.
  TensorChoice by_size = {};
};

/// A step of all tensors that Muon moves; the others stay. `momentum` is a
/// buffer of the layout, 0 at first: the first moments of Adam, which no tensor
/// has two of.
void muon_step(const Layout& layout, VectorOf<float>& weights,
               const VectorOf<float>& gradients, VectorOf<float>& momentum,
               const MuonStep& step, const MuonOptions& options);

}  // namespace lipscope
