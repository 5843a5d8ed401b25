#pragma once

#include <functional>
#include <memory>

#include "lipscope/operators/linear_operator.h"

namespace lipscope {

/// What is known of the Jacobian J of a map of sequences on a small space: all
/// tokens of a sequence move along one u, token j by profile_j u, and `effect`
/// says, exactly or nearly, how far the outputs move. It has far fewer unknowns
/// than J, so that the u it stretches most is found at little cost. A search
/// may start there; nothing is stated by it.
template <class Real>
struct CommonShift {
  /// One block for each sequence, from u to what the outputs do; null where
  /// nothing is known.
  std::unique_ptr<LinearOperator<Real>> effect;
  VectorOf<Real> profile;  ///< of the tokens of one sequence, of unit length
};

/// The CommonShift of a map at x, where its Jacobian is J. Empty: none is known
/// for any x.
template <class Real>
using CommonShiftAt = std::function<CommonShift<Real>(
    const LinearOperator<Real>& J, const MatrixOf<Real>& x)>;

}  // namespace lipscope
