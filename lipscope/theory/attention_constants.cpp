#include "lipscope/theory/attention_constants.h"

#include <fmt/format.h>

#include <cmath>

#include "lipscope/core/errors.h"
#include "lipscope/theory/bounds.h"
#include "lipscope/theory/column_sums.h"
#include "lipscope/theory/kim21.h"
#include "lipscope/theory/l2_kernel.h"
#include "lipscope/theory/norms.h"
#include "lipscope/theory/relative_positions.h"
#include "lipscope/theory/row_sums.h"

namespace lipscope {

AttentionConstants::AttentionConstants(const AttentionWeights& weights,
                                       Kind kind, const Mask& mask,
                                       const ScoreForm& form)
    : kind_(kind), mask_(mask), form_(form) {
  require_sound(weights, kind);
  if (name().empty()) return;
  if (form.relative_bias)
    require_addable(*form.relative_bias, weights, kind, mask);
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
  if (kind == Kind::l2 && form.relative_bias)
    for (HeadWeights h : layer_.heads) {
      l2_heads_.projected.push_back(l2_path_factor(l2_path_norms({h})));
      h.output.resize(0, 0);
      l2_heads_.alone.push_back(l2_path_factor(l2_path_norms({h})));
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
  if (kind_ == Kind::l2 && form_.relative_bias) return relative_l2(n);
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
    const Magnitude of_two = in_two(i, sizes, n, mask);
    const Magnitude of_token = row_sums(sizes);
    two.alone.push_back(of_two * h.value);
    two.projected.push_back(of_two * h.projected);
    token.alone.push_back(of_token * h.value);
    token.projected.push_back(of_token * h.projected);
  }
  const Magnitude largest = together(layer_, token);
  return AttentionGain{together(layer_, two), largest, largest};
}

Magnitude AttentionConstants::in_two(std::size_t head, const ScoreSizes& sizes,
                                     Index n, const Mask& mask) const {
  const std::optional<RelativeBias>& bias = form_.relative_bias;
  if (bias && mask == Mask::causal)
    return relative_column_sums(
        sizes, scores_behind(*bias, static_cast<Index>(head), n));
  if (bias)
    return Magnitude(sizes.diagonal) +
           (Magnitude(1.0) + sizes.pull) *
               root(static_cast<double>(most_seeing(mask, n)));
  if (mask == Mask::causal) return column_sums_causal(sizes, n);
  if (mask == Mask::none) return column_sums(sizes, n);
  return column_sums_masked(sizes, n, mask);
}

// a row answers to the longest token of dX, which is at most ‖dX‖_F long
AttentionGain AttentionConstants::relative_l2(Index n) const {
  HeadBounds two = l2_heads_, token = l2_heads_;
  for (std::size_t i = 0; i < l2_heads_.alone.size(); ++i) {
    const Vector behind =
        scores_behind(*form_.relative_bias, static_cast<Index>(i), n);
    const Magnitude of_two = relative_l2_two(behind);
    const Magnitude of_token = relative_l2_token(behind);
    for (std::vector<Magnitude>* of : {&two.alone, &two.projected})
      (*of)[i] = (*of)[i] * of_two;
    for (std::vector<Magnitude>* of : {&token.alone, &token.projected})
      (*of)[i] = (*of)[i] * of_token;
  }
  const Magnitude largest = together(layer_, token);
  return {together(layer_, two), largest, largest};
}

std::string AttentionConstants::name() const {
  if (!why_nothing().empty()) return "";
  if (kind_ != Kind::l2) return row_sums_statement.name;
  return form_.relative_bias ? relative_l2_token_statement.name
                             : l2_row_sums_statement.name;
}

std::string AttentionConstants::why_nothing() const {
  const std::string why = why_no_bounds(kind_, mask_);
  if (!why.empty()) return why;
  if (kind_ != Kind::l2 && kind_ != Kind::dot)
    return fmt::format("nothing is proved of {} attention token by token",
                       name_of(kind_));
  if (kind_ == Kind::l2 && form_.relative_bias && mask_ != Mask::causal)
    return fmt::format(
        "nothing is proved of relative positions in l2 attention under the "
        "mask \"{}\"",
        name_of(mask_));
  if (kind_ == Kind::l2 && (form_.rope || form_.query_key_norm))
    return fmt::format("nothing is proved of {} in l2 attention",
                       form_.rope ? "rotary positions" : "q/k-norm");
  if (form_.query_key_norm && !(form_.query_key_norm->epsilon > 0.0))
    return "the epsilon of the q/k-norm is 0";
  return "";
}

}  // namespace lipscope
