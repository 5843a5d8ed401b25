#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lipscope/operators/linear_operator.h"
#include "lipscope/spectral/enclosure.h"
#include "lipscope/spectral/norm_estimate.h"

namespace lipscope {

struct GolubKahanOptions {
  double tolerance = 1e-5;  ///< on the relative residual ‖AᵀA v − σ² v‖/σ²
  int max_steps = 300;
  /// If above 1: go on until upper_factor ≤ enclose as well.
  double enclose = 0.0;
  double delta = 1e-10;    ///< probability with which the enclosure may fail
  std::uint64_t seed = 0;  ///< of the starting vectors
  /// A seed for each part, for starts that are independent of one another;
  /// empty: `seed` for all of them, as if each were run alone.
  std::vector<std::uint64_t> seeds = {};
  int threads = 0;  ///< of the vector work; 0: all cores
  /// Called after every step with its number; false ends the run, which is an
  /// outcome and not an error. May be empty.
  std::function<bool(int step)> keep_going = {};
  /// Bytes that the stored vectors of each part may take; 0: any number. After
  /// vectors_within(memory, …) steps the run starts again from its best
  /// direction, and upper_factor stays what the first cycle, the one with the
  /// random start, could say.
  std::uint64_t memory = 0;
  /// A vector for each part, all end to end, that the random start is added
  /// to: standard Gaussian numbers, about √N long. It may depend on A, but not
  /// on the random numbers of the seed; then the enclosure holds as it does
  /// without one, from the length of the sum. Empty: zero.
  Vector hint = {};
  /// Where to start in place of a random start, for all parts end to end. No
  /// enclosure is stated then. A part that starts at zero is left alone and
  /// keeps value and direction 0.
  Vector start = {};
  /// The parts that run; the others are left alone as well. Empty: all run.
  std::vector<Index> only = {};
};

/// How many vectors of `unknowns` numbers fit so many bytes: at least eight,
/// whatever they take. memory is not 0.
template <class Real>
Index vectors_within(std::uint64_t memory, Index unknowns);

/// ‖A‖₂, the largest singular value of A, from below, by Golub–Kahan–Lanczos
/// bidiagonalisation with full reorthogonalisation [GolubKahan65]: the largest
/// ‖A v‖ over the unit v of the Krylov space
///
///   span{v₁, AᵀA v₁, …, (AᵀA)^{m−1} v₁}.
///
/// A step costs one apply, one apply_adjoint and one more stored vector. A
/// random start also encloses ‖A‖₂ from above, see enclosure_factor. Running
/// out of steps is an outcome, not an error: see `converged`. The result has
/// the same bits for any number of threads if those of A have.
template <class Real>
NormEstimate golub_kahan(const LinearOperator<Real>& a,
                         GolubKahanOptions options = {});

/// Where a consists of `parts` parts of equal size down its diagonal, and of
/// zeros elsewhere: one estimate for each part, as if it were run alone; in
/// lock step, so that every product with a serves all parts. What comes out for
/// a part has the same bits whichever parts stand beside it, if the products
/// with a have. A part that has finished is fed zeros.
///
/// The enclosure of each part may fail with probability delta.
template <class Real>
std::vector<NormEstimate> golub_kahan(const LinearOperator<Real>& a,
                                      Index parts, GolubKahanOptions options);

}  // namespace lipscope
