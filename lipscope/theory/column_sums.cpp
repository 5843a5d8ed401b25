#include "lipscope/theory/column_sums.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "lipscope/core/rounding.h"

namespace lipscope {
namespace {

// log(1 + y)/y, from above; 1 at y = 0, and falling
double mean_of_hyperbola(double y) {
  return y < 1e-12 ? 1.0 : std::min(1.0, well_above(std::log1p(y) / y));
}

}  // namespace

namespace {

// the largest column sum under a window, with e^{−2s} from below
double largest_under_window(double weight, Index n, const Mask& mask) {
  const Index padding = mask.padding_before + mask.padding_after;
  if (*mask.window < (n - padding) / 4) n = 4 * *mask.window + padding;
  std::vector<double> sums(n + 1, 0.0);  // of the first rows
  for (Index i = 0; i < n; ++i) {
    const double others = static_cast<double>(visible(mask, i, n).size()) - 1.0;
    sums[i + 1] = sums[i] + 1.0 / (1.0 + others * weight);
  }
  double most = 0.0;
  for (Index j = 0; j < n; ++j) {
    const TokenRange rows = seeing(mask, j, n);
    most = std::max(most, sums[rows.end] - sums[rows.begin]);
  }
  // n roundings in each sum
  return most + 4 * unit_roundoff * static_cast<double>(n) * sums[n];
}

}  // namespace

Magnitude largest_column_sum(double spread, Index n, const Mask& given) {
  require_sound(given, n);
  const Mask mask = at_length(given, n);
  const double tokens = static_cast<double>(n);
  // from below, so that what is divided by it comes out from above; where the
  // exponential underflows the sum is n
  const double weight = std::exp(-2.0 * spread) * (1.0 - 0x1p-40);
  // the tokens that are seen
  const double seen = static_cast<double>(most_visible(mask, n));
  double sum = 0.0;
  if (mask.window)
    sum = largest_under_window(weight, n, mask);
  else if (mask.hides_later)
    sum = 1.0 + (seen - 1.0) * mean_of_hyperbola((seen - 1.0) * weight) +
          (tokens - seen) / (1.0 + (seen - 1.0) * weight);
  else
    sum = tokens / (1.0 + (seen - 1.0) * weight);
  return std::clamp(well_above(sum), 1.0,
                    static_cast<double>(most_seeing(mask, n)));
}

const Statement column_sums_statement{
    .name = "column_sums",
    .norm = Norm::two,
    .mask = "none",
    .citation =
        "lipscope: column sums of P over the ball, proof in "
        "theory/column_sums.h"};

Magnitude column_sums(const ScoreSizes& s, Index n) {
  return Magnitude(s.diagonal) +
         (Magnitude(1.0) + s.pull) *
             root(largest_column_sum(s.spread, n, Mask::none));
}

const Statement column_sums_meanfield_statement{
    .name = "column_sums_meanfield",
    .norm = Norm::w2,
    .mask = "none",
    .citation =
        "lipscope: weighted column sums of P, proof in theory/column_sums.h"};

Magnitude column_sums_meanfield(const ScoreSizes& s) {
  return Magnitude(s.diagonal) + (Magnitude(1.0) + s.pull) * exp_of(s.spread);
}

const Statement column_sums_causal_statement{
    .name = "column_sums_causal",
    .norm = Norm::two,
    .mask = "causal",
    .citation =
        "lipscope: column sums of a masked P, and Hardy's inequality, proof "
        "in theory/column_sums.h"};

Magnitude column_sums_causal(const ScoreSizes& s, Index n) {
  const Magnitude by_columns =
      Magnitude(s.diagonal) +
      (Magnitude(1.0) + s.pull) *
          root(largest_column_sum(s.spread, n, Mask::causal));
  return smaller(by_columns, hardy_meanfield(s));
}

const Statement column_sums_masked_statement{
    .name = "column_sums_masked",
    .norm = Norm::two,
    .mask = "any",
    .citation =
        "lipscope: column sums of P under a mask with a window or padding, "
        "proof in theory/column_sums.h"};

Magnitude column_sums_masked(const ScoreSizes& s, Index n, const Mask& mask) {
  return Magnitude(s.diagonal) +
         (Magnitude(1.0) + s.pull) *
             root(largest_column_sum(s.spread, n, mask));
}

const Statement hardy_meanfield_statement{
    .name = "hardy_meanfield",
    .norm = Norm::w2,
    .mask = "causal",
    .citation =
        "lipscope: Hardy's inequality, in the conditional distance of "
        "masked measures, proof in theory/column_sums.h"};

Magnitude hardy_meanfield(const ScoreSizes& s) {
  return Magnitude(s.diagonal) + (Magnitude(1.0) + Magnitude(s.pull) * 2.0) *
                                     exp_of(2.0 * s.spread) * 2.0;
}

}  // namespace lipscope
