#pragma once

#include "lipscope/core/matrix.h"

/// Making the largest singular values of a matrix smaller and leaving the
/// others alone. With Y = (WᵀW/s²)^16 for an s ≥ ‖W‖₂,
///
///   W (I − εY)  has the singular values  σ(1 − ε(σ/s)³²):
///
/// those at s lose the share ε, those at 0.9 s a thirtieth of that. The four
/// squarings of a Gram matrix cost far less than singular vectors. Nothing is
/// proved here: what came out is to be measured anew.
namespace lipscope {

/// Y [n×n], for W [m×n].
template <class Real>
MatrixOf<Real> leading_directions(const MatrixOf<Real>& w, double norm);

/// W(I − εY), by the smaller of WᵀW and WWᵀ. 0 ≤ ε ≤ most_trimmed, so that
/// larger singular values stay larger.
template <class Real>
MatrixOf<Real> spectral_trim(const MatrixOf<Real>& w, double norm,
                             double share);
inline constexpr double most_trimmed = 0.03;  // 1/33

}  // namespace lipscope
