#pragma once

#include "lipscope/operators/compose.h"
#include "lipscope/transport/measure.h"

namespace lipscope {

/// Γ_μ with μ fixed: row i of the input looks at the tokens of μ (under a mask,
/// from the position of token i), is not looked at, and goes to Γ_μ(x_i),
///
///   Γ_μ(x) = Σ_j w_j e^{s(x, x_j)} x_j V / Σ_j w_j e^{s(x, x_j)}.
///
/// Rows do not feel each other: the Jacobian consists of n parts [e×d] down
/// its diagonal, one for each row. At the tokens of μ themselves these are
///
///   Σ_h A_h Cov_i^h V_h     (tied L2: Σ_h 2 A_h Cov_i^h A_h V_h),
///
/// what the two halves of token i are moved by when they part and their centre
/// stays: see local_constant.h.
template <class Real>
MapPtr<Real> fixed_measure_map(const AttentionWeights& weights,
                               const AttentionOptions& options,
                               const Measure& measure);

}  // namespace lipscope
