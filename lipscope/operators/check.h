#pragma once

#include "lipscope/core/rng.h"
#include "lipscope/operators/map.h"

/// The two identities that every Map must satisfy, as a public tool: whoever
/// writes a Map of their own can ask whether its Jacobian is one.
namespace lipscope {

/// How far J·dx is from the difference quotient of the map along dx.
struct DerivativeCheck {
  double error = 0.0;  ///< ‖J dx − quotient‖ / ‖J dx‖, at the best step
  double magnitude =
      0.0;  ///< ‖J dx‖: a check of a zero derivative says nothing
  bool identical = false;  ///< bit for bit equal: one was made from the other
  double step = 0.0;       ///< the step that gave `error`
};

/// Compares the Jacobian at x with central differences of fourth order along a
/// random direction. Several steps are tried, since the best one depends on how
/// fast the map bends; the error is about 1e-10 for a right Jacobian in f64.
DerivativeCheck check_derivative(const Map<double>& f, const Matrix& x,
                                 const Rng& rng);

/// |⟨u, A v⟩ − ⟨Aᵀu, v⟩| / max(‖A v‖, ‖Aᵀu‖) for random unit u and v: rounding
/// error alone for a right adjoint, summed in double for both precisions.
template <class Real>
double adjoint_defect(const LinearOperator<Real>& a, const Rng& rng);

}  // namespace lipscope
