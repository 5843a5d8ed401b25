#include "tests/campaign/case.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lipscope::campaign {

double Claim::ratio() const {
  if (std::isnan(reached) || std::isnan(allowed)) return NAN;
  if (!(reached > 0.0)) return 0.0;
  return allowed > 0.0 ? reached / allowed
                       : std::numeric_limits<double>::infinity();
}

namespace {

Case first_case(const Dice& dice, std::uint64_t number) {
  switch (number % 16) {
    case 10:
      return normed_case(dice);
    case 11:
      return measure_case(dice);
    case 12:
    case 13:
      return layer_case(dice);
    case 14:
      return part_case(dice);
    case 15:
      return stack_case(dice);
    default:
      return attention_case(dice);
  }
}

// A move of all tokens, of one, or of one number, by about `reach`.
Matrix moved(Matrix x, double reach, Dice& dice) {
  const Index i = dice.pick(x.rows());
  switch (dice.pick(3)) {
    case 0:
      x += reach * dice.gaussian(x.rows(), x.cols());
      break;
    case 1:
      x.row(i) += reach * dice.gaussian(1, x.cols());
      break;
    default:
      x(i, dice.pick(x.cols())) += reach * dice.normal();
  }
  return x;
}

// x after random moves, each kept if claim `target` came nearer to its bound
Matrix climbed(const Case& c, Matrix x, std::size_t target, int steps,
               Dice& dice) {
  const auto ratio_at = [&](const Matrix& at) {
    return c.claims(at, target).front().ratio();
  };
  double best = ratio_at(x);
  double reach = 0.5 * std::max(1e-3, x.rowwise().norm().maxCoeff());
  for (int s = 0; s < steps; ++s) {
    const Matrix tried = c.confined(moved(x, reach, dice));
    const double now = ratio_at(tried);
    if (now > best) {
      best = now;
      x = tried;
      reach *= 1.3;
    } else {
      reach *= 0.85;
    }
  }
  return x;
}

void weaken(std::vector<Claim>& claims, const Weakened& weakened) {
  for (Claim& c : claims)
    if (c.name == weakened.name) c.allowed *= weakened.factor;
}

std::vector<Claim> examine_case(const Case& c, bool climbs, Dice dice) {
  std::vector<Claim> all = c.claims(c.x, {});
  if (!climbs || all.empty()) return all;
  const std::size_t target = dice.pick(static_cast<Index>(all.size()));
  const int steps = dice.chance(1.0 / 32) ? 200 : 16;
  Matrix x = climbed(c, c.x, target, steps, dice);
  if (c.ascended && dice.chance(1.0 / 8))
    x = c.confined(c.ascended(x, all[target].name));
  const std::vector<Claim> there = c.claims(x, {});
  all.insert(all.end(), there.begin(), there.end());
  return all;
}

}  // namespace

std::vector<Case> draw_cases(std::uint64_t seed, std::uint64_t number) {
  const Rng rng = Rng(seed).split(number);
  std::vector<Case> cases;
  cases.push_back(first_case(Dice(rng), number));
  const Dice more(rng.split(2));
  if (number % 4 == 1)
    cases.push_back(masked_case(more));
  else if (number % 8 == 3)
    cases.push_back(scored_case(more));
  else if (number % 8 == 7)
    cases.push_back(layer_case(more, true));
  return cases;
}

std::vector<Claim> examine(std::uint64_t seed, std::uint64_t number,
                           const Weakened& weakened) {
  std::vector<Claim> all;
  // drawn apart from the cases, so that these are the same climbed or not
  std::uint64_t stream = 1;
  for (const Case& c : draw_cases(seed, number)) {
    const std::vector<Claim> claims = examine_case(
        c, number / 16 % 5 < 3, Dice(Rng(seed).split(number).split(stream)));
    all.insert(all.end(), claims.begin(), claims.end());
    stream = 3;
  }
  weaken(all, weakened);
  return all;
}

bool scores_differ(const AttentionWeights& weights, const AttentionOptions& o,
                   const Matrix& x) {
  const Index n = x.rows(), k = weights.query_width();
  const auto with = [&](const Matrix& w, const Vector& b, Index h) {
    Matrix y = x * w.middleCols(h * k, k);
    if (b.size()) y.rowwise() += b.segment(h * k, k).transpose();
    if (o.kind == Kind::cosine)
      for (Index i = 0; i < n; ++i)
        y.row(i) /= std::sqrt(y.row(i).squaredNorm() + o.cosine.epsilon);
    return y;
  };
  const double root = std::sqrt(static_cast<double>(k));
  for (Index h = 0; h < weights.heads; ++h) {
    const Matrix q = with(weights.query, weights.query_bias, h);
    const Matrix keys = o.kind == Kind::l2 ? q
                                           : with(weights.key, weights.key_bias,
                                                  weights.key_head(h));
    for (Index i = 0; i < n; ++i) {
      double low = HUGE_VAL, high = -HUGE_VAL;
      const TokenRange seen = visible(o.mask, i, n);
      for (Index j = seen.begin; j < seen.end; ++j) {
        const double s =
            o.kind == Kind::l2
                ? -(q.row(i) - keys.row(j)).squaredNorm() / root
                : q.row(i).dot(keys.row(j)) *
                      (o.kind == Kind::cosine ? o.cosine.tau : 1.0 / root);
        low = std::min(low, s);
        high = std::max(high, s);
      }
      if (high - low >= 0.5 && high - low <= 20.0) return true;
    }
  }
  return false;
}

}  // namespace lipscope::campaign
