// Attention of every kind over a ball, everywhere, and at its input.

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "lipscope/attention/dense.h"
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

constexpr Certificate all_certificates[] = {
    Certificate::castin24_ball, Certificate::castin24_data,
    Certificate::yudin25_local, Certificate::covariances,
    Certificate::split_paths,   Certificate::token_pairs};

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
    const Matrix J = dense_jacobian(weights, options, x);
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
  return fmt::format(
      "{}{} mask {} n {} d {} heads {}{}{}", name_of(p.options.kind),
      p.options.rope ? " rotary" : "", name_of(p.options.mask), x.rows(),
      x.cols(), p.weights.heads, p.weights.query_bias.size() ? " biased" : "",
      p.options.project ? " projected" : "");
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
  p->certificates.emplace(p->weights, p->options);
  const std::string of = rotary              ? " (rotary)"
                         : kind == Kind::dot ? ""
                                             : " (" + name_of(kind) + ")";
  for (const Certificate which : all_certificates)
    if (p->certificates->offers(which))
      p->spoken.push_back(
          {"at X: " + name_of(which) + of, MeasuredNorm::two, 0.0, which});
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
