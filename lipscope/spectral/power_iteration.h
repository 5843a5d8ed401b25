#pragma once

#include <cstdint>

#include "lipscope/operators/linear_operator.h"
#include "lipscope/spectral/norm_estimate.h"

namespace lipscope {

struct PowerIterationOptions {
  double tolerance = 1e-5;  ///< on the relative residual ‖AᵀA v − σ² v‖/σ²
  int max_steps = 500;
  std::uint64_t seed = 0;  ///< of the starting vector
};

/// ‖A‖₂, the largest singular value of A, from below, by power iteration on AᵀA
/// [GolubVanLoan13]. Costs one apply and one apply_adjoint a step.
///
/// The baseline that golub_kahan is measured against, which finds at least as
/// large a value in as many products. It states no enclosure. Running out of
/// steps is an outcome, not an error: see `converged`.
template <class Real>
NormEstimate power_iteration(const LinearOperator<Real>& a,
                             const PowerIterationOptions& options = {});

}  // namespace lipscope
