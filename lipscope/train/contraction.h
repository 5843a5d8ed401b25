#pragma once

#include "lipscope/core/matrix.h"

/// What Contractive-L2 attention is divided by [Kim21]: the bound on Lip_inf of
/// tied L2 attention on n tokens, as a function of the weights,
///
///   c(W) = (4p + 1/√k) ‖W_Oᵀ‖_inf max_h ‖W_Q^h‖_inf‖W_Q^hᵀ‖_inf
///          max_h ‖W_V^hᵀ‖_inf,
///
/// with p as in theory/kim21.h. Its gradient is one of a maximum: that of the
/// row, column and head that attain it (the first of them).
namespace lipscope {

/// The weights of a tied L2 layer: query, value [d×H·k], output [H·k×d]; also
/// their gradients.
template <class Real>
struct ConstL2Views {
  ConstView<Real> query, value, output;
};
template <class Real>
struct L2Views {
  View<Real> query, value, output;
};

template <class Real>
double contraction(const ConstL2Views<Real>& w, Index heads, Index n);

/// Adds g ∂c/∂W to the gradients.
template <class Real>
void contraction_backward(const ConstL2Views<Real>& w, Index heads, Index n,
                          double g, L2Views<Real> gradients);

}  // namespace lipscope
