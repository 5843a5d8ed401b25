#pragma once

#include <string>

#include "lipscope/core/matrix.h"

namespace lipscope {

/// The function between the two matrices of an MLP, with Φ the normal
/// distribution function and s the logistic one.
enum class Activation {
  gelu,       ///< x Φ(x) [Hendrycks16]
  gelu_tanh,  ///< x (1 + tanh(√(2/π)(x + 0.044715 x³)))/2, GPT-2's gelu_new
  relu,       ///< max(x, 0)
  silu        ///< x s(x)
};

std::string name_of(Activation activation);  ///< "gelu", "gelu_new", …

/// Values and derivatives, entry by entry.
template <class Real>
struct Activated {
  MatrixOf<Real> value, slope;
};

/// The activation of each entry of x. The derivative of relu at 0 is taken
/// as 0. In f32 Φ is good to 2e-7 absolutely, about as good as f32 can hold it.
template <class Real>
Activated<Real> activate(Activation activation, const MatrixOf<Real>& x,
                         int threads);

}  // namespace lipscope
