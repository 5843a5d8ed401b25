#include "lipscope/theory/row_sums.h"

#include <cmath>

namespace lipscope {

const Statement row_sums_statement{
    .name = "row_sums",
    .norm = Norm::token,
    .mask = "any",
    .citation = "lipscope: largest token norm, proof in theory/row_sums.h"};

Magnitude row_sums(const ScoreSizes& s) {
  return Magnitude(1.0) + s.diagonal + s.pull;
}

const Statement l2_row_sums_statement{
    .name = "l2_row_sums",
    .norm = Norm::token,
    .mask = "any",
    .citation =
        "lipscope: Kim21's lemma in the largest token norm, proof in "
        "theory/row_sums.h"};

Magnitude l2_row_sums(double p, Index k) {
  const double inverse_root = well_above(1.0 / std::sqrt(double(k)));
  return (Magnitude(p) * 4.0 + 1.0) * inverse_root;
}

Magnitude l2_row_sums_weights(const LayerHeads& layer,
                              const std::vector<L2HeadNorms>& norms) {
  HeadBounds heads;
  for (const L2HeadNorms& h : norms) {
    const Magnitude squared = Magnitude(h.query) * h.query;
    heads.alone.push_back(squared * h.value);
    heads.projected.push_back(squared * h.projected);
  }
  return together(layer, heads);
}

}  // namespace lipscope
