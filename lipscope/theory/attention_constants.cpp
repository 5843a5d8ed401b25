#include "lipscope/theory/attention_constants.h"

#include <cmath>

#include "lipscope/core/errors.h"
#include "lipscope/theory/bounds.h"
#include "lipscope/theory/column_sums.h"
#include "lipscope/theory/kim21.h"
#include "lipscope/theory/l2_kernel.h"
#include "lipscope/theory/row_sums.h"

namespace lipscope {

AttentionConstants::AttentionConstants(const AttentionWeights& weights,
                                       Kind kind, const Mask& mask)
    : kind_(kind), mask_(mask) {
  require_sound(weights, kind);
  if (name().empty()) return;
  layer_ = layer_heads(weights, {}, true);
  std::vector<L2HeadNorms> norms;
  for (const HeadWeights& h : layer_.heads)
    if (kind == Kind::dot)
      dot_.push_back(head_norms(h, {1.0, {}}, false));
    else
      norms.push_back(l2_head_norms(h));
  if (kind == Kind::l2) {
    const Magnitude inverse_root =
        well_above(1.0 / std::sqrt(static_cast<double>(weights.query_width())));
    l2_token_ = l2_row_sums_weights(layer_, norms) * inverse_root;
    l2_path_ =
        smaller(kim21_weight_factor(norms) * layer_.output * inverse_root,
                l2_path_factor(l2_path_norms(layer_.heads)));
  }
  layer_.heads.clear();
}

std::optional<AttentionGain> AttentionConstants::over(Index n,
                                                      double radius) const {
  if (name().empty()) return std::nullopt;
  if (kind_ == Kind::l2) {
    const Magnitude row =
        l2_row_sums(kim21_phi_inverse(most_visible(mask_, n)), 1);
    return AttentionGain{l2_kernel(n, mask_) * l2_path_, row * l2_token_,
                         row * l2_path_};
  }
  HeadBounds two, token;
  for (const HeadNorms& h : dot_) {
    const ScoreSizes sizes = sizes_over_ball(h, radius);
    const Mask mask = at_length(mask_, n);
    const Magnitude of_two = mask == Mask::causal ? column_sums_causal(sizes, n)
                             : mask == Mask::none
                                 ? column_sums(sizes, n)
                                 : column_sums_masked(sizes, n, mask);
    const Magnitude of_token = row_sums(sizes);
    two.alone.push_back(of_two * h.value);
    two.projected.push_back(of_two * h.projected);
    token.alone.push_back(of_token * h.value);
    token.projected.push_back(of_token * h.projected);
  }
  const Magnitude largest = together(layer_, token);
  return AttentionGain{together(layer_, two), largest, largest};
}

std::string AttentionConstants::name() const {
  if (!why_no_bounds(kind_, mask_).empty()) return "";
  return kind_ == Kind::l2    ? l2_row_sums_statement.name
         : kind_ == Kind::dot ? row_sums_statement.name
                              : "";
}

}  // namespace lipscope
