#pragma once

#include "lipscope/attention/weights.h"

namespace lipscope {

/// A number for each distance of two tokens, added to their score [Raffel20]:
/// s_ij + table[bucket(j − i)][h] in head h. Tokens ahead and behind have half
/// of the buckets each. Of these B = buckets/2, the first B/2 are for one
/// distance each, and the others for distances that grow geometrically up to
/// `furthest`; what is further away is in the last.
///
/// With `looks_back` tokens ahead have no bucket, and row t of the table is for
/// the distance i − j = t alone, the last for all from there on.
struct RelativeBias {
  Matrix table;             ///< [buckets×H]
  Index furthest = 128;     ///< beyond it all distances are alike
  bool looks_back = false;  ///< under masks that hide later tokens alone
};

/// Throws std::invalid_argument unless it can be added to the scores of such
/// heads under the mask: those of a softmax, with a column for each.
void require_addable(const RelativeBias& bias, const AttentionWeights& weights,
                     Kind kind, const Mask& mask);

/// The row of the table for tokens that are `distance` = j − i apart. In single
/// precision, as Hugging Face rounds it.
Index relative_bucket(const RelativeBias& bias, Index distance);

/// What head h adds to scores of n tokens: entry j − i + n − 1. Where tokens
/// ahead have no bucket there is 0 for them.
Vector relative_scores(const RelativeBias& bias, Index h, Index n);

/// The same for tokens at the distances 0, 1, …, n − 1 behind.
Vector scores_behind(const RelativeBias& bias, Index h, Index n);

}  // namespace lipscope
