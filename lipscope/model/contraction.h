#pragma once

#include "lipscope/core/matrix.h"
#include "lipscope/model/activation.h"

/// What a layer is divided by that may not move two inputs apart: bounds on
/// Lip_inf as functions of the weights. Contractive-L2 attention [Kim21] on n
/// tokens, with p as in attention/l2.h,
///
///   c(W) = (4p + 1/√k) ‖W_Oᵀ‖_inf max_h ‖W_Q^h‖_inf‖W_Q^hᵀ‖_inf
///          max_h ‖W_V^hᵀ‖_inf,
///
/// and an MLP, with L_act = max|act'|,
///
///   c(W) = ‖W_upᵀ‖_inf L_act ‖W_downᵀ‖_inf.
///
/// Their gradients are those of a maximum: of the row, column and head that
/// attain it (the first of them). Rounded to nearest, not upwards: for a proof
/// of what the divided layer does, theory/ looks at its weights again.
namespace lipscope {

/// The weights of a tied L2 layer: query, value [d×H·k], output [H·k×d]; also
/// their gradients. Borrowed: these must outlive the views.
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

/// The matrices of an MLP that is not gated: up [d×m], down [m×d]; also their
/// gradients. Borrowed: these must outlive the views.
template <class Real>
struct ConstMlpViews {
  ConstView<Real> up, down;
};
template <class Real>
struct MlpViews {
  View<Real> up, down;
};

template <class Real>
double mlp_contraction(const ConstMlpViews<Real>& w, Activation activation);

/// Adds g ∂c/∂W to the gradients.
template <class Real>
void mlp_contraction_backward(const ConstMlpViews<Real>& w,
                              Activation activation, double g,
                              MlpViews<Real> gradients);

}  // namespace lipscope
