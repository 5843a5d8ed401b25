// Attention of every kind over a ball, everywhere, and at its input.

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <utility>

#include "lipscope/attention/dense.h"
#include "lipscope/attention/kinds.h"
#include "lipscope/search/ascent.h"
#include "lipscope/search/constructions.h"
#include "lipscope/theory/attention_constants.h"
#include "lipscope/theory/bounds.h"
#include "lipscope/theory/certificates.h"
#include "tests/campaign/case.h"
#include "tests/campaign/draw.h"
#include "tests/campaign/measured.h"

namespace lipscope::campaign {
namespace {

// what has to be measured for a claim
enum class MeasuredNorm { two, inf, token, row };

struct Spoken {
  std::string name;
  MeasuredNorm measured = MeasuredNorm::two;
  double allowed = 0.0;                      // over the set, or
  std::optional<Certificate> at_input = {};  // made at each input
};

struct AttentionProblem {
  AttentionWeights weights;
  AttentionOptions options;
  std::vector<Spoken> spoken;
  std::optional<LocalCertificates> certificates;
  Rng rng{0};

  // the closed form has q/k-norm of each head, not over all of them
  Matrix jacobian(const Matrix& x) const {
    if (options.query_key_norm && options.query_key_norm->over_heads)
      return materialize(
          *MultiHeadAttention<double>(weights, options).linearize(x));
    return dense_jacobian(weights, options, x);
  }

  double measured(MeasuredNorm what, const Matrix& J, Index n,
                  bool quick) const {
    switch (what) {
      case MeasuredNorm::inf:
        return inf_norm(J);
      case MeasuredNorm::token:
        return token_norm(J, n, rng);
      case MeasuredNorm::row:
        return row_norm(J, n);
      default:
        return two_norm(J, quick);
    }
  }

  Claim claim(const Spoken& s, const Matrix& x, double reached) const {
    return {s.name, reached,
            s.at_input ? certificates->at(x, *s.at_input).value : s.allowed};
  }

  std::vector<Claim> claims(const Matrix& x,
                            std::optional<std::size_t> only) const {
    const Matrix J = jacobian(x);
    const Index n = x.rows();
    if (only) {
      const Spoken& s = spoken[*only];
      return {claim(s, x, measured(s.measured, J, n, true))};
    }
    const bool mixed = scores_differ(weights, options, x);
    std::optional<double> known[4];
    std::vector<Claim> all;
    for (const Spoken& s : spoken) {
      std::optional<double>& reached = known[static_cast<int>(s.measured)];
      if (!reached) reached = measured(s.measured, J, n, false);
      all.push_back(claim(s, x, *reached));
      all.back().mixed = mixed;
    }
    return all;
  }

  Matrix ascended(const Matrix& x, const std::string& name,
                  const Region& region) const {
    MeasuredNorm what = MeasuredNorm::two;
    for (const Spoken& s : spoken)
      if (s.name == name) what = s.measured;
    if (what == MeasuredNorm::row) return x;
    const Norm norm = what == MeasuredNorm::inf     ? Norm::inf
                      : what == MeasuredNorm::token ? Norm::token
                                                    : Norm::two;
    Objective f(weights, options, norm, 1);
    return ascend([&](const Matrix& at) { return f(at); }, region, x,
                  {.max_evaluations = 30})
        .x;
  }
};

MeasuredNorm measure_of(Norm norm) {
  return norm == Norm::inf     ? MeasuredNorm::inf
         : norm == Norm::token ? MeasuredNorm::token
                               : MeasuredNorm::two;
}

void speak_of(AttentionProblem& p, const BoundSetting& question,
              const std::string& suffix) {
  for (const Bound& b : bounds(p.weights, question))
    p.spoken.push_back({b.name + suffix, measure_of(b.norm), b.value});
}

Case made(std::shared_ptr<AttentionProblem> p, std::string what, Matrix x,
          const Region& region) {
  const double R = region.radius;
  const bool ball = region.gain.size() == 0;
  return {.what = std::move(what),
          .x = std::move(x),
          .confined =
              [region, R, ball](Matrix y) {
                if (!region.bounded()) return y;
                if (ball) return within(std::move(y), R);
                return tokens_of(region,
                                 nearest(region, coordinates_of(region, y)));
              },
          .claims =
              [p](const Matrix& y, std::optional<std::size_t> only) {
                return p->claims(y, only);
              },
          .ascended =
              [p, region](const Matrix& y, const std::string& name) {
                return p->ascended(y, name, region);
              }};
}

std::string described(const AttentionProblem& p, const Matrix& x) {
  const std::string scores = p.options.query_key_norm  ? " q/k-norm"
                             : p.options.relative_bias ? " relative"
                                                       : "";
  return fmt::format("{}{}{} mask {} n {} d {} heads {}{}{}",
                     name_of(p.options.kind), p.options.rope ? " rotary" : "",
                     scores, name_of(p.options.mask), x.rows(), x.cols(),
                     p.weights.heads,
                     p.weights.query_bias.size() ? " biased" : "",
                     p.options.project ? " projected" : "");
}

// all that are offered at an input
void speak_at_input(AttentionProblem& p, const std::string& suffix) {
  p.certificates.emplace(p.weights, p.options);
  for (const Certificate which : all_certificates)
    if (p.certificates->offers(which))
      p.spoken.push_back(
          {"at X: " + name_of(which) + suffix, MeasuredNorm::two, 0.0, which});
}

void draw_scales(AttentionProblem& p, Dice& dice) {
  if (p.options.kind == Kind::cosine)
    p.options.cosine = {.tau = dice.log_uniform(0.1, 10.0),
                        .nu = dice.log_uniform(0.1, 10.0),
                        .epsilon = dice.log_uniform(1e-4, 1.0)};
}

QueryKeyNorm draw_query_key_norm(const AttentionWeights& w, Dice& dice) {
  const bool over_heads = dice.chance(0.3);
  const Index k = w.query_width();
  const double size = std::exp(0.7 * dice.normal());
  return {
      .query_gain =
          size * flatten(dice.gaussian(1, over_heads ? w.heads * k : k)),
      .key_gain = flatten(dice.gaussian(1, over_heads ? w.groups() * k : k)),
      .epsilon = dice.log_uniform(1e-6, 1.0),
      .over_heads = over_heads};
}

// what the draw leaves, now and then an input that theory names
void maybe_constructed(const AttentionProblem& p, const Region& region,
                       Matrix& x, Dice& dice) {
  if (p.options.kind == Kind::sigmoid || p.options.kind == Kind::cosine ||
      !dice.chance(0.15))
    return;
  const std::vector<Construction> made =
      constructions(p.weights, p.options, region, x.rows());
  if (made.empty()) return;
  const Matrix& named = made[dice.pick(static_cast<Index>(made.size()))].x;
  if (named.allFinite()) x = named;
}

}  // namespace

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
  if (kind == Kind::cosine)
    p->options.cosine = {.tau = dice.log_uniform(0.1, 10.0),
                         .nu = dice.log_uniform(0.1, 10.0),
                         .epsilon = dice.log_uniform(1e-4, 1.0)};
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
  return made(p, std::move(what), std::move(x), region);
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
  draw_scales(*p, dice);
  Matrix x = draw_tokens(p->weights, kind, n, dice);
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
  return made(p, std::move(what), std::move(x), region);
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
  draw_scales(*p, dice);
  if (normed) p->options.query_key_norm = draw_query_key_norm(p->weights, dice);
  if (!normed || dice.chance(0.2))
    p->options.relative_bias = RelativeBias{
        .table = std::exp(dice.normal()) * dice.gaussian(8, p->weights.heads),
        .furthest = 6};
  Matrix x = draw_tokens(p->weights, kind, n, dice);
  const Region region = ball(radius_of(x));
  const std::string scores = normed ? "q/k-norm" : "relative";
  speak_at_input(*p, kind == Kind::dot
                         ? " (" + scores + ")"
                         : " (" + name_of(kind) + ", " + scores + ")");
  std::string what = described(*p, x);
  return made(p, std::move(what), std::move(x), region);
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
  return made(p, std::move(what), std::move(x), region);
}

}  // namespace lipscope::campaign
