#pragma once

#include <vector>

#include "lipscope/spectral/estimate.h"

namespace lipscope {

/// Which tokens the worst change enters, and which it reaches from there.
///
/// v is the direction of a measurement, v_j its part at token j, J_ij the part
/// of the Jacobian from token j to token i. What comes out at token i is a sum
/// over the tokens where the change went in, (J v)_i = Σ_j J_ij v_j, and
///
///   F_ij = ⟨J_ij v_j, (J v)_i⟩ / ‖J v‖²          [n×n]
///
/// is the part of the squared length ‖J v‖² that comes out at i on account of
/// j. It is negative where the two work against each other. Row i sums to the
/// share of token i in J v. Column j sums to the share of token j in v where v
/// is a singular direction, JᵀJ v = σ² v; otherwise it is away from that by at
/// most residual · |v_j|/‖v‖ (Measurement::residual).
///
/// One matrix for each of `found`, which are the measurements of the sequences
/// that j acts on, each of n tokens; an empty one where J v = 0. It takes n
/// products with j.
std::vector<Matrix> token_flows(const LinearOperator<double>& j,
                                const std::vector<Measurement>& found, Index n);

}  // namespace lipscope
