#pragma once

#include "lipscope/attention/head.h"
#include "lipscope/core/errors.h"

namespace lipscope {

/// Tokens so large that their weights are not known.
class TokensTooLarge : public RunError {
 public:
  using RunError::RunError;
};

/// Throws TokensTooLarge where rounding in f64 changes the scores of one row by
/// more than 1e-6 and several of them count: a weight would change by that
/// share of it, and a constant with it.
///
/// A score Σ_m q_m k_m is off by about u = 2⁻⁵⁰ times Σ_m |q_m k_m|: with l2
/// attention the sizes are squares of distances to the mean, and what is left
/// of them between tokens that are near each other may be all noise. A weight
/// counts where its score is within 40 of the largest (e⁻⁴⁰ = 4·10⁻¹⁸), or, of
/// σ(s + b), within 40 of the bend. Where one weight of a softmax counts alone
/// it is 1 whatever its score.
void require_settled_scores(const HeadFeatures<double>& at,
                            const Weighting& weighting);

}  // namespace lipscope
