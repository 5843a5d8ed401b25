#include "lipscope/spectral/shift_direction.h"

#include "lipscope/core/errors.h"
#include "lipscope/core/rng.h"
#include "lipscope/spectral/golub_kahan.h"

namespace lipscope {
namespace {

// The start is none of those that Rng(seed).split(0) gives a search: what is
// found here may be the hint of an enclosure, and must not depend on the random
// numbers there.
constexpr std::uint64_t shift_stream = std::uint64_t{1} << 61;

}  // namespace

template <class Real>
VectorOf<Real> shift_direction(const CommonShift<Real>& shift,
                               Index sequences) {
  if (!shift.effect) return {};
  require(sequences > 0 && shift.effect->cols() % sequences == 0,
          "shift_direction: {} unknowns do not divide into {} sequences",
          shift.effect->cols(), sequences);
  const Index n = shift.profile.size(), d = shift.effect->cols() / sequences;
  const std::vector<NormEstimate> found =
      golub_kahan(*shift.effect, sequences,
                  {.tolerance = 3e-3,
                   .max_steps = 20,
                   .threads = 1,
                   .start = random_direction(d, Rng(0).split(shift_stream))
                                .replicate(sequences, 1)});
  MatrixOf<Real> direction(sequences * n, d);
  for (Index s = 0; s < sequences; ++s) {
    const VectorOf<Real> u = found[s].direction.template cast<Real>();
    direction.middleRows(s * n, n) = shift.profile * u.transpose();
  }
  return flatten(direction);
}

template <class Real>
VectorOf<Real> shift_direction(const CommonShiftAt<Real>& shift,
                               const LinearOperator<Real>& J,
                               const MatrixOf<Real>& x, Index sequences) {
  if (!shift) return {};
  VectorOf<Real> direction = shift_direction(shift(J, x), sequences);
  require(direction.size() == 0 || direction.size() == x.size(),
          "shift_direction: {} numbers for a [{}x{}] input", direction.size(),
          x.rows(), x.cols());
  return direction;
}

template VectorOf<float> shift_direction(const CommonShift<float>&, Index);
template VectorOf<double> shift_direction(const CommonShift<double>&, Index);
template VectorOf<float> shift_direction(const CommonShiftAt<float>&,
                                         const LinearOperator<float>&,
                                         const MatrixOf<float>&, Index);
template VectorOf<double> shift_direction(const CommonShiftAt<double>&,
                                          const LinearOperator<double>&,
                                          const MatrixOf<double>&, Index);

}  // namespace lipscope
