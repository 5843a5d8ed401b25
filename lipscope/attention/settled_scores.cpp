#include "lipscope/attention/settled_scores.h"

#include <algorithm>
#include <cmath>

namespace lipscope {
namespace {

constexpr double unit = 0x1p-50;
constexpr double most_lost = 1e-6;
constexpr double near = 40.0;

// of the keys from `first` on, which token i sees
Vector scores_of(const HeadFeatures<double>& at, const Weighting& weighting,
                 Index i, const TokenRange& seen) {
  Vector s = at.k.middleRows(seen.begin, seen.size()) * at.q.row(i).transpose();
  if (weighting.log_mass.size() > 0)
    s += weighting.log_mass.segment(seen.begin, seen.size());
  if (weighting.by_distance.size() > 0)
    s += weighting.by_distance.segment(at.q.rows() - 1 - i + seen.begin,
                                       seen.size());
  return s;
}

}  // namespace

void require_settled_scores(const HeadFeatures<double>& at,
                            const Weighting& weighting) {
  const double longest =
      at.q.rowwise().norm().maxCoeff() * at.k.rowwise().norm().maxCoeff();
  if (unit * longest <= most_lost) return;  // nearly always
  const Index n = at.q.rows();
  for (Index i = 0; i < n; ++i) {
    const TokenRange seen = weighting.visible(i, n);
    const Vector scores = scores_of(at, weighting, i, seen);
    const Vector off =
        unit * (at.k.middleRows(seen.begin, seen.size()).cwiseAbs() *
                at.q.row(i).cwiseAbs().transpose());
    const double origin =
        weighting.sigmoid_shift ? -*weighting.sigmoid_shift : scores.maxCoeff();
    Index counting = 0;
    double lost = 0.0;
    for (Index j = 0; j < scores.size(); ++j) {
      if (std::abs(scores[j] - origin) > near + 2.0 * off[j]) continue;
      ++counting;
      lost = std::max(lost, off[j]);
    }
    if (lost > most_lost && (counting > 1 || weighting.sigmoid_shift))
      throw TokensTooLarge(fmt::format(
          "attention: the tokens are too large: token {} sees {} tokens whose "
          "scores rounding changes by {:.2g}, so that their weights are not "
          "known",
          i, counting, lost));
  }
}

}  // namespace lipscope
