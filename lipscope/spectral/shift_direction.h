#pragma once

#include "lipscope/operators/common_shift.h"

namespace lipscope {

/// The direction that shifts the tokens of each sequence along the u that
/// `shift` stretches most, as far as a few steps find it: of unit length in
/// each sequence, all sequences end to end. Empty where nothing is known.
template <class Real>
VectorOf<Real> shift_direction(const CommonShift<Real>& shift, Index sequences);

/// The same of a map at x, which holds these sequences under one another; the
/// Jacobian there is J.
template <class Real>
VectorOf<Real> shift_direction(const CommonShiftAt<Real>& shift,
                               const LinearOperator<Real>& J,
                               const MatrixOf<Real>& x, Index sequences);

}  // namespace lipscope
