// More tokens than the other families have, of few features: where there are
// more singular values than leading_apart splits off, and where bounds grow.

#include <memory>
#include <utility>

#include "lipscope/attention/kinds.h"
#include "tests/campaign/attention_problem.h"
#include "tests/campaign/draw.h"

namespace lipscope::campaign {
namespace {

bool may_be_normed(Kind kind) {
  return kind == Kind::dot || kind == Kind::cosine || kind == Kind::l2_untied;
}

}  // namespace

Case many_case(Dice dice) {
  constexpr Kind kinds[] = {Kind::dot,       Kind::dot,    Kind::dot,
                            Kind::l2,        Kind::cosine, Kind::sigmoid,
                            Kind::l2_untied, Kind::sigmoid};
  const Kind kind = kinds[dice.pick(8)];
  const bool rotary = kind_of(kind).no_rope.empty() && dice.chance(0.15);
  const bool normed = may_be_normed(kind) && dice.chance(0.15);
  const auto p = std::make_shared<AttentionProblem>();
  p->rng = Rng(dice.next());
  p->weights = draw_weights({.kind = kind,
                             .d = dice.size(3),
                             .heads = 2,
                             .even = rotary,
                             .value_bias = kind == Kind::sigmoid && !rotary,
                             .width = 3},
                            dice);
  // (what is made of pairs of tokens takes its time)
  const Index n = 9 + dice.size(dice.chance(0.3) ? 56 : 16);
  p->options = {.kind = kind,
                .mask = dice.chance(0.3)   ? draw_mask(n, dice)
                        : dice.chance(0.5) ? Mask::none
                                           : Mask::causal,
                .project = dice.chance(0.75),
                .threads = 1};
  if (rotary) p->options.rope = Rotary{.theta = dice.log_uniform(2.0, 1e4)};
  if (kind == Kind::cosine) p->options.cosine = draw_scales(dice);
  if (normed) p->options.query_key_norm = draw_query_key_norm(p->weights, dice);
  Matrix x = draw_tokens(p->weights, kind, n, dice);
  keep_distances_known(p->weights, kind, radius_of(x));
  const double R = radius_of(x);
  const Mask& mask = p->options.mask;
  const Region region =
      !normed && kind != Kind::l2_untied && kind_of(kind).lipschitz_under(mask)
          ? everywhere()
          : ball(R);
  if (!normed && (!rotary || kind == Kind::dot))
    speak_of(*p,
             {.kind = kind,
              .mask = mask,
              .project = p->options.project,
              .n = n,
              .radius = R,
              .rope = rotary,
              .cosine = p->options.cosine},
             rotary ? " (rotary, many)" : " (many)");
  speak_at_input(*p, kind == Kind::dot && !rotary && !normed
                         ? " (many)"
                         : " (" + name_of(kind) + (rotary ? ", rotary" : "") +
                               (normed ? ", q/k-norm" : "") + ", many)");
  std::string what = described(*p, x);
  Case made = attention_case_of(p, std::move(what), std::move(x), region);
  made.steps = 4;
  return made;
}

}  // namespace lipscope::campaign
