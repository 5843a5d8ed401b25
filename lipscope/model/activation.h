#pragma once

#include <span>
#include <string>

#include "lipscope/core/matrix.h"

namespace lipscope {

/// The function between the two matrices of an MLP, with Φ the normal
/// distribution function and s the logistic one.
enum class Activation {
  gelu,       ///< x Φ(x) [Hendrycks16]
  gelu_tanh,  ///< x (1 + tanh(√(2/π)(x + 0.044715 x³)))/2, GPT-2's gelu_new
  relu,       ///< max(x, 0)
  silu,       ///< x s(x)
  max_min     ///< (x_a, x_b) ↦ (max, min), see model/max_min.h [Anil19]
};

std::string name_of(Activation activation);  ///< "gelu", "gelu_new", …

/// max|act'| from above: 1 (relu), 1.1290 (gelu, both forms), 1.0999 (silu).
double activation_slope(Activation activation);

/// The activation of each entry of x. In f32 Φ is good to 2e-7 absolutely,
/// about as good as f32 can hold it.
template <class Real>
MatrixOf<Real> activation_values(Activation activation, MatrixOf<Real> x,
                                 int threads);

/// Its derivative at each entry of x. That of relu at 0 is taken as 0.
template <class Real>
MatrixOf<Real> activation_slopes(Activation activation, MatrixOf<Real> x,
                                 int threads);

/// Both at once, on the calling thread: x becomes its activation, and slopes
/// the derivative where x was.
template <class Real>
void activate_with_slopes(Activation activation, std::span<Real> x,
                          std::span<Real> slopes);

}  // namespace lipscope
