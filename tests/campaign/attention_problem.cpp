#include "tests/campaign/attention_problem.h"

#include <fmt/format.h>

#include <utility>

#include "lipscope/attention/dense.h"
#include "lipscope/attention/kinds.h"
#include "lipscope/search/ascent.h"
#include "lipscope/search/constructions.h"
#include "tests/campaign/draw.h"
#include "tests/campaign/measured.h"

namespace lipscope::campaign {
namespace {

MeasuredNorm measure_of(Norm norm) {
  return norm == Norm::inf     ? MeasuredNorm::inf
         : norm == Norm::token ? MeasuredNorm::token
                               : MeasuredNorm::two;
}

}  // namespace

Matrix AttentionProblem::jacobian(const Matrix& x) const {
  return reference_jacobian(weights, options, x);
}

double AttentionProblem::measured(MeasuredNorm what, const Matrix& J, Index n,
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

Claim AttentionProblem::claim(const Spoken& s, const Matrix& x,
                              double reached) const {
  return {s.name, reached,
          s.at_input ? certificates->at(x, *s.at_input).value : s.allowed};
}

std::vector<Claim> AttentionProblem::claims(
    const Matrix& x, std::optional<std::size_t> only) const {
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

Matrix AttentionProblem::ascended(const Matrix& x, const std::string& name,
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

void speak_of(AttentionProblem& p, const BoundSetting& question,
              const std::string& suffix) {
  for (const Bound& b : bounds(p.weights, question))
    p.spoken.push_back({b.name + suffix, measure_of(b.norm), b.value});
}

void speak_at_input(AttentionProblem& p, const std::string& suffix) {
  p.certificates.emplace(p.weights, p.options);
  for (const Certificate which : all_certificates)
    if (p.certificates->offers(which))
      p.spoken.push_back(
          {"at X: " + name_of(which) + suffix, MeasuredNorm::two, 0.0, which});
}

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

Case attention_case_of(std::shared_ptr<AttentionProblem> p, std::string what,
                       Matrix x, const Region& region) {
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

}  // namespace lipscope::campaign
