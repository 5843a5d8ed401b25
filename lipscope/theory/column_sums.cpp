#include "lipscope/theory/column_sums.h"

#include <algorithm>
#include <cmath>

namespace lipscope {
namespace {

// log(1 + y)/y, from above; 1 at y = 0, and falling
double mean_of_hyperbola(double y) {
  return y < 1e-12 ? 1.0 : std::min(1.0, well_above(std::log1p(y) / y));
}

}  // namespace

Magnitude largest_column_sum(double spread, Index n, Mask mask) {
  const double tokens = static_cast<double>(n);
  // from below, so that what is divided by it comes out from above; where the
  // exponential underflows the sum is n
  const double weight = std::exp(-2.0 * spread) * (1.0 - 0x1p-40);
  const double sum =
      mask == Mask::causal
          ? 1.0 + (tokens - 1.0) * mean_of_hyperbola((tokens - 1.0) * weight)
          : tokens / (1.0 + (tokens - 1.0) * weight);
  return std::clamp(well_above(sum), 1.0, tokens);
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
