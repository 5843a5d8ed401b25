#include "lipscope/attention/settled_scores.h"

#include <algorithm>
#include <cmath>

namespace lipscope {
namespace {

constexpr double unit = 0x1p-50;
constexpr double near = 40.0;

}  // namespace

SettledScores::SettledScores(const HeadFeatures<double>& at,
                             const Weighting& weighting)
    : at_(at), sigmoid_shift_(weighting.sigmoid_shift) {
  const double longest =
      at.q.rowwise().norm().maxCoeff() * at.k.rowwise().norm().maxCoeff();
  all_settled_ = unit * longest <= most_lost;
}

void SettledScores::require_row(Index i, Index first,
                                const ConstView<double>& scores) const {
  if (all_settled_) return;
  // from here on 0 is the largest score, or the bend
  const double origin =
      sigmoid_shift_ ? -*sigmoid_shift_ : scores.row(0).maxCoeff();
  Index counting = 0;
  double lost = 0.0;
  for (Index j = 0; j < scores.cols(); ++j) {
    const double off =
        unit * at_.q.row(i).cwiseAbs().dot(at_.k.row(first + j).cwiseAbs());
    if (std::abs(scores(0, j) - origin) > near + 2.0 * off) continue;
    ++counting;
    lost = std::max(lost, off);
  }
  if (lost > most_lost && (counting > 1 || sigmoid_shift_))
    throw TokensTooLarge(fmt::format(
        "attention: the tokens are too large: token {} sees {} tokens whose "
        "scores rounding changes by {:.2g}, so that their weights are not "
        "known",
        i, counting, lost));
}

}  // namespace lipscope
