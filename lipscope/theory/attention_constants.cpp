#include "lipscope/theory/attention_constants.h"

#include <fmt/format.h>

#include <cmath>

#include "lipscope/core/errors.h"
#include "lipscope/theory/bounds.h"
#include "lipscope/theory/column_sums.h"
#include "lipscope/theory/kim21.h"
#include "lipscope/theory/l2_kernel.h"
#include "lipscope/theory/norms.h"
#include "lipscope/theory/row_sums.h"

namespace lipscope {

AttentionConstants::AttentionConstants(const AttentionWeights& weights,
                                       Kind kind, const Mask& mask,
                                       const ScoreForm& form)
    : kind_(kind), mask_(mask), form_(form) {
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
  if (form.query_key_norm) {
    const QueryKeyNorm& norm = *form.query_key_norm;
    const Index k = weights.query_width();
    for (const HeadWeights& h : layer_.heads) {
      RotatedHead one;
      one.root = std::sqrt(static_cast<double>(k));
      // a norm of all heads moves with all of them
      one.query = normed(norm.over_heads ? weights.query : h.query,
                         norm.query_gain, norm.epsilon);
      one.key = normed(norm.over_heads ? weights.key : h.key, norm.key_gain,
                       norm.epsilon);
      rotated_.push_back(one);
    }
  } else if (form.rope) {
    for (const HeadWeights& h : layer_.heads)
      rotated_.push_back({projected(h.query, h.query_bias),
                          projected(h.key, h.key_bias),
                          std::sqrt(static_cast<double>(h.query.cols()))});
  }
  layer_.heads.clear();
}

AttentionConstants::Projected AttentionConstants::projected(
    const Matrix& weight, const Vector& bias) {
  const double norm = weight_norm_above(weight);
  return {norm, length_above(bias), norm};
}

AttentionConstants::Projected AttentionConstants::normed(const Matrix& weight,
                                                         const Vector& gain,
                                                         double epsilon) {
  const double largest = gain.cwiseAbs().maxCoeff();
  return {0.0, std::sqrt(static_cast<double>(gain.size())) * largest,
          well_above(largest / std::sqrt(epsilon)) * weight_norm_above(weight)};
}

ScoreSizes AttentionConstants::sizes(std::size_t head, double R) const {
  if (rotated_.empty()) return sizes_over_ball(dot_[head], R);
  const auto& [query, key, root] = rotated_[head];
  const double long_q = query.slope * R + query.length;
  const double long_k = key.slope * R + key.length;
  return {well_above(query.move * long_k * R / root),
          well_above(long_q * key.move * R / root),
          well_above(long_q * long_k / root)};
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
  const Mask mask = at_length(mask_, n);
  for (std::size_t i = 0; i < dot_.size(); ++i) {
    const HeadNorms& h = dot_[i];
    const ScoreSizes sizes = this->sizes(i, radius);
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
  if (!why_nothing().empty()) return "";
  return kind_ == Kind::l2 ? l2_row_sums_statement.name
                           : row_sums_statement.name;
}

std::string AttentionConstants::why_nothing() const {
  const std::string why = why_no_bounds(kind_, mask_);
  if (!why.empty()) return why;
  if (kind_ != Kind::l2 && kind_ != Kind::dot)
    return fmt::format("nothing is proved of {} attention token by token",
                       name_of(kind_));
  if (form_.relative_bias)
    return "nothing is proved of relative positions in the scores";
  if (kind_ == Kind::l2 && (form_.rope || form_.query_key_norm))
    return fmt::format("nothing is proved of {} in l2 attention",
                       form_.rope ? "rotary positions" : "q/k-norm");
  if (form_.query_key_norm && !(form_.query_key_norm->epsilon > 0.0))
    return "the epsilon of the q/k-norm is 0";
  return "";
}

}  // namespace lipscope
