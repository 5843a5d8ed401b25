#pragma once

#include "lipscope/core/matrix.h"

/// Heads that write coordinates of their own, without W_O (see
/// model/language_model_config.h): what is made of the numbers that they learn,
/// in f64.
namespace lipscope {

/// c_h = (e^{s_h}/Σ_g e^{s_g})^{1/2} of the learnt s [H]: Σ_h c_h² = 1.
Vector head_shares(const Vector& learnt);

/// p_th = e^{b_ht}/Σ_u e^{b_hu} [T×P] of the learnt bias b [P×T] of distances.
Matrix distance_weights(const Matrix& bias);

/// What stands in place of W_O [C·k×d]: feature j of head h goes to coordinate
/// first + h·k + j, times the share of the head.
struct ApartOutput {
  Index first = 0;       ///< coordinate of the first head
  Index head_width = 1;  ///< k
  Index width = 1;       ///< d
};
Matrix apart_output(const Vector& shares, const ApartOutput& where);

}  // namespace lipscope
