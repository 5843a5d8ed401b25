#include "lipscope/theory/own.h"

#include <algorithm>
#include <cmath>

namespace lipscope {
namespace {

// log(1 + y)/y, from above; 1 at y = 0, and falling
double mean_of_hyperbola(double y) {
  return y < 1e-12 ? 1.0 : std::min(1.0, well_above(std::log1p(y) / y));
}

}  // namespace

Magnitude column_sum(double spread, Index n, Mask mask) {
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

const Statement own_ball_statement{
    .name = "own_ball",
    .norm = "2",
    .mask = "none",
    .citation = "own: column sums of P over the ball, proof in theory/own.h"};

Magnitude own_ball(const ScoreSizes& s, Index n) {
  return Magnitude(s.diagonal) +
         (Magnitude(1.0) + s.pull) * root(column_sum(s.spread, n, Mask::none));
}

const Statement own_meanfield_statement{
    .name = "own_meanfield",
    .norm = "w2",
    .mask = "none",
    .citation = "own: weighted column sums of P, proof in theory/own.h"};

Magnitude own_meanfield(const ScoreSizes& s) {
  return Magnitude(s.diagonal) + (Magnitude(1.0) + s.pull) * exp_of(s.spread);
}

const Statement own_causal_statement{
    .name = "own_causal",
    .norm = "2",
    .mask = "causal",
    .citation =
        "own: column sums of a masked P, and Hardy's inequality, proof "
        "in theory/own.h"};

Magnitude own_causal(const ScoreSizes& s, Index n) {
  const Magnitude by_columns =
      Magnitude(s.diagonal) +
      (Magnitude(1.0) + s.pull) * root(column_sum(s.spread, n, Mask::causal));
  return smaller(by_columns, own_causal_meanfield(s));
}

const Statement own_causal_meanfield_statement{
    .name = "own_causal_meanfield",
    .norm = "w2",
    .mask = "causal",
    .citation =
        "own: Hardy's inequality, in the conditional distance of "
        "masked measures, proof in theory/own.h"};

Magnitude own_causal_meanfield(const ScoreSizes& s) {
  return Magnitude(s.diagonal) + (Magnitude(1.0) + Magnitude(s.pull) * 2.0) *
                                     exp_of(2.0 * s.spread) * 2.0;
}

const Statement own_token_statement{
    .name = "own_token",
    .norm = "token",
    .mask = "any",
    .citation = "own: largest token norm, proof in theory/own.h"};

Magnitude own_token(const ScoreSizes& s) {
  return Magnitude(1.0) + s.diagonal + s.pull;
}

const Statement own_local_statement{
    .name = "own_local",
    .norm = "2",
    .mask = "any",
    .citation =
        "own: covariances and column sums at the input, proof in "
        "theory/own.h"};

const Statement own_blocks_statement{
    .name = "own_blocks",
    .norm = "2",
    .mask = "any",
    .citation = "own: norm of the matrix of block norms"};

const Statement own_split_statement{
    .name = "own_split",
    .norm = "2",
    .mask = "any",
    .citation =
        "own: value path by its leading direction, key and query paths "
        "by block norms, proof in theory/split.h"};

const Statement own_l2_statement{
    .name = "own_l2",
    .norm = "2",
    .mask = "any",
    .citation =
        "own: Kim21's lemma with the diagonal apart, proof in "
        "theory/own.h"};

Magnitude own_l2(double p, Index n, Index k) {
  const double tokens = static_cast<double>(n);
  const double inverse_root = well_above(1.0 / std::sqrt(double(k)));
  return (Magnitude(p) * 2.0 +
          (Magnitude(1.0) + Magnitude(p) * 2.0) * root(tokens)) *
         inverse_root;
}

const Statement own_l2_token_statement{
    .name = "own_l2_token",
    .norm = "token",
    .mask = "any",
    .citation =
        "own: Kim21's lemma in the largest token norm, proof in theory/own.h"};

Magnitude own_l2_token(double p, Index k) {
  const double inverse_root = well_above(1.0 / std::sqrt(double(k)));
  return (Magnitude(p) * 4.0 + 1.0) * inverse_root;
}

Magnitude own_l2_token_weights(const LayerHeads& layer,
                               const std::vector<L2HeadNorms>& norms) {
  HeadBounds heads;
  for (const L2HeadNorms& h : norms) {
    const Magnitude squared = Magnitude(h.query) * h.query;
    heads.alone.push_back(squared * h.value);
    heads.projected.push_back(squared * h.projected);
  }
  return together(layer, heads);
}

const Statement own_cosine_statement{
    .name = "own_cosine",
    .norm = "2",
    .mask = "any",
    .citation =
        "own: column sums of P and unit variances, proof in "
        "theory/own.h"};

Magnitude own_cosine(const CosineNorms& c, Index n, Mask mask) {
  const Magnitude slope = well_above(c.nu / std::sqrt(c.epsilon));
  const Magnitude mixed = Magnitude(c.tau) * c.key + c.value;
  return slope * (Magnitude(c.tau) * c.query +
                  root(column_sum(c.tau, n, mask)) * mixed);
}

}  // namespace lipscope
