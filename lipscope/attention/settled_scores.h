#pragma once

#include "lipscope/attention/head.h"
#include "lipscope/core/errors.h"

namespace lipscope {

/// Tokens so large that the weights they have are not known: rounding changes
/// the scores by more than `most_lost` where several of them count.
class TokensTooLarge : public RunError {
 public:
  using RunError::RunError;
};

/// A change of a score by so much changes a weight by this share of it.
inline constexpr double most_lost = 1e-6;

/// Throws TokensTooLarge where the scores of one row are lost in rounding.
///
/// In f64 a score Σ_m q_m k_m is off by about u = 2⁻⁵⁰ times Σ_m |q_m k_m|:
/// with l2 attention the sizes are squares of distances to the mean, and what
/// is left of them between tokens that are near each other may be all noise. A
/// weight counts where its score is within 40 of the largest (e⁻⁴⁰ = 4·10⁻¹⁸),
/// or, of σ(s + b), within 40 of the bend. Where one weight of a softmax counts
/// alone it is 1 whatever its score.
class SettledScores {
 public:
  SettledScores(const HeadFeatures<double>& at, const Weighting& weighting);

  /// `scores` are those of token i against the tokens from `first` on; it sees
  /// all of them.
  void require_row(Index i, Index first, const ConstView<double>& scores) const;

 private:
  const HeadFeatures<double>& at_;
  std::optional<double> sigmoid_shift_;
  bool all_settled_;  // by the longest query and the longest key alone
};

}  // namespace lipscope
