// Attention of every kind over a ball, everywhere, and at its input.

#include <cmath>
#include <memory>
#include <utility>

#include "lipscope/attention/kinds.h"
#include "lipscope/theory/attention_constants.h"
#include "lipscope/theory/bounds.h"
#include "tests/campaign/attention_problem.h"
#include "tests/campaign/case.h"
#include "tests/campaign/draw.h"

namespace lipscope::campaign {

Case attention_case(Dice dice) {
  constexpr Kind kinds[] = {Kind::dot,    Kind::dot,    Kind::dot, Kind::dot,
                            Kind::dot,    Kind::l2,     Kind::l2,  Kind::l2,
                            Kind::cosine, Kind::sigmoid};
  const Kind kind = kinds[dice.pick(10)];
  const bool rotary = kind == Kind::dot && dice.chance(0.2);
  const auto p = std::make_shared<AttentionProblem>();
  p->rng = Rng(dice.next());
  p->weights =
      draw_weights({.kind = kind, .even = rotary, .value_bias = !rotary}, dice);
  p->options = {.kind = kind,
                .mask = dice.chance(0.5) ? Mask::none : Mask::causal,
                .project = dice.chance(0.75),
                .threads = 1};
  if (rotary) p->options.rope = Rotary{.theta = dice.log_uniform(2.0, 1e4)};
  if (kind == Kind::cosine) p->options.cosine = draw_scales(dice);
  const Index n = dice.tokens(8);
  Matrix x = draw_tokens(p->weights, kind, n, dice);
  const double R = radius_of(x);
  const bool everywhere_known = kind == Kind::l2 || kind == Kind::cosine;
  const Region region = everywhere_known ? everywhere() : ball(R);
  if (!rotary) maybe_constructed(*p, region, x, dice);

  speak_of(*p,
           {.kind = kind,
            .mask = p->options.mask,
            .project = p->options.project,
            .n = n,
            .radius = R,
            .rope = rotary,
            .cosine = p->options.cosine},
           rotary ? " (rotary)" : "");
  if ((kind == Kind::dot || kind == Kind::l2) && !rotary &&
      p->options.project) {
    const AttentionGain gain =
        *AttentionConstants(p->weights, kind, p->options.mask).over(n, R);
    p->spoken.push_back(
        {"row gain, " + name_of(kind), MeasuredNorm::row, gain.row.value()});
  }
  speak_at_input(*p, rotary              ? " (rotary)"
                     : kind == Kind::dot ? ""
                                         : " (" + name_of(kind) + ")");
  std::string what = described(*p, x);
  return attention_case_of(p, std::move(what), std::move(x), region);
}

Case masked_case(Dice dice) {
  constexpr Kind kinds[] = {Kind::dot,    Kind::dot,    Kind::dot,
                            Kind::l2,     Kind::l2,     Kind::l2_untied,
                            Kind::cosine, Kind::sigmoid};
  const Kind kind = kinds[dice.pick(8)];
  const bool rotary = kind == Kind::dot && dice.chance(0.2);
  const auto p = std::make_shared<AttentionProblem>();
  p->rng = Rng(dice.next());
  p->weights =
      draw_weights({.kind = kind, .even = rotary, .value_bias = !rotary}, dice);
  const Index n = 1 + dice.tokens(8);
  p->options = {.kind = kind,
                .mask = draw_mask(n, dice),
                .project = dice.chance(0.75),
                .threads = 1};
  if (rotary) p->options.rope = Rotary{.theta = dice.log_uniform(2.0, 1e4)};
  if (kind == Kind::cosine) p->options.cosine = draw_scales(dice);
  Matrix x = draw_tokens(p->weights, kind, n, dice);
  keep_distances_known(p->weights, kind, radius_of(x));
  const double R = radius_of(x);
  const Mask& mask = p->options.mask;
  const Region region =
      kind_of(kind).lipschitz_under(mask) ? everywhere() : ball(R);
  if (!rotary && kind != Kind::l2_untied)
    maybe_constructed(*p, region, x, dice);

  const std::string of = rotary ? " (rotary, masked)"
                         : kind == Kind::dot
                             ? " (masked)"
                             : " (" + name_of(kind) + ", masked)";
  speak_of(*p,
           {.kind = kind,
            .mask = mask,
            .project = p->options.project,
            .n = n,
            .radius = R,
            .rope = rotary,
            .cosine = p->options.cosine},
           rotary ? " (rotary, masked)" : " (masked)");
  const AttentionConstants constants(p->weights, kind, mask);
  if (!constants.name().empty() && !rotary && p->options.project)
    p->spoken.push_back({"row gain, " + name_of(kind) + " (masked)",
                         MeasuredNorm::row, constants.over(n, R)->row.value()});
  speak_at_input(*p, of);
  std::string what = described(*p, x);
  return attention_case_of(p, std::move(what), std::move(x), region);
}

Case scored_case(Dice dice) {
  const bool normed = dice.chance(0.6);
  constexpr Kind kinds[] = {Kind::dot, Kind::dot, Kind::dot, Kind::cosine,
                            Kind::l2_untied};
  const Kind kind = kinds[dice.pick(5)];
  const bool rotary =
      kind_of(kind).no_rope.empty() && kind == Kind::dot && dice.chance(0.3);
  const auto p = std::make_shared<AttentionProblem>();
  p->rng = Rng(dice.next());
  p->weights =
      draw_weights({.kind = kind, .even = rotary, .value_bias = false}, dice);
  const Index n = 1 + dice.tokens(8);
  p->options = {.kind = kind,
                .mask = dice.chance(0.3)   ? draw_mask(n, dice)
                        : dice.chance(0.5) ? Mask::none
                                           : Mask::causal,
                .project = dice.chance(0.75),
                .threads = 1};
  if (rotary) p->options.rope = Rotary{.theta = dice.log_uniform(2.0, 1e4)};
  if (kind == Kind::cosine) p->options.cosine = draw_scales(dice);
  if (normed) p->options.query_key_norm = draw_query_key_norm(p->weights, dice);
  if (!normed || dice.chance(0.2))
    p->options.relative_bias = RelativeBias{
        .table = std::exp(dice.normal()) * dice.gaussian(8, p->weights.heads),
        .furthest = 6};
  Matrix x = draw_tokens(p->weights, kind, n, dice);
  keep_distances_known(p->weights, kind, radius_of(x));
  const Region region = ball(radius_of(x));
  const std::string scores = normed ? "q/k-norm" : "relative";
  speak_at_input(*p, kind == Kind::dot
                         ? " (" + scores + ")"
                         : " (" + name_of(kind) + ", " + scores + ")");
  std::string what = described(*p, x);
  return attention_case_of(p, std::move(what), std::move(x), region);
}

Case normed_case(Dice dice) {
  const bool rotary = dice.chance(0.3);
  const auto p = std::make_shared<AttentionProblem>();
  p->rng = Rng(dice.next());
  const Index d = 1 + dice.size(5);
  p->weights =
      draw_weights({.d = d, .even = rotary, .value_bias = !rotary}, dice);
  p->options = {.kind = Kind::dot,
                .mask = dice.chance(0.5) ? Mask::none : Mask::causal,
                .project = dice.chance(0.75),
                .threads = 1};
  if (rotary) p->options.rope = Rotary{.theta = dice.log_uniform(2.0, 1e4)};
  NormWeights norm = draw_norm(d, dice);
  // logits of at most about 10⁶ here as well
  const double R = norm_layer_radius(norm);
  const double logit = p->weights.query.norm() * p->weights.key.norm() * R * R;
  if (logit > 1e6) {
    norm.gain *= std::sqrt(1e6 / logit);
    if (norm.bias.size()) norm.bias *= std::sqrt(1e6 / logit);
  }
  const Region region = after_norm(norm);
  const Index n = dice.tokens(8);
  Matrix z = dice.gaussian(n, d);
  if (dice.chance(0.5))
    z = std::sqrt(static_cast<double>(d)) * z.rowwise().normalized();
  Matrix x = tokens_of(region, nearest(region, z));
  if (!rotary) maybe_constructed(*p, region, x, dice);
  speak_of(*p,
           {.kind = Kind::dot,
            .mask = p->options.mask,
            .project = p->options.project,
            .n = n,
            .radius = norm_layer_radius(norm),
            .norm = norm,
            .rope = rotary},
           rotary ? " (rotary, after a norm)" : " (after a norm)");
  std::string what = described(*p, x) + " after a norm layer";
  return attention_case_of(p, std::move(what), std::move(x), region);
}

}  // namespace lipscope::campaign
