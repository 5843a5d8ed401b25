#include "tests/campaign/case.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <sstream>

#include "lipscope/attention/settled_scores.h"
#include "lipscope/core/errors.h"

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

// nothing where the library refuses the input
std::optional<std::vector<Claim>> claims_at(const Case& c, const Matrix& x,
                                            std::optional<std::size_t> only) {
  try {
    return c.claims(x, only);
  } catch (const TokensTooLarge&) {
    return std::nullopt;
  }
}

// x after random moves, each kept if claim `target` came nearer to its bound
Matrix climbed(const Case& c, Matrix x, std::size_t target, int steps,
               Dice& dice) {
  const auto ratio_at = [&](const Matrix& at) {
    const auto there = claims_at(c, at, target);
    return there ? there->front().ratio() : 0.0;
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

// x climbed by gradients; x itself where one of the steps is refused
Matrix ascended(const Case& c, const Matrix& x, const std::string& name) {
  try {
    return c.confined(c.ascended(x, name));
  } catch (const TokensTooLarge&) {
    return x;
  }
}

void weaken(std::vector<Claim>& claims, const Weakened& weakened) {
  for (Claim& c : claims)
    if (c.name == weakened.name) c.allowed *= weakened.factor;
}

void examine_case(const Case& c, bool climbs, Dice dice, Examined& found) {
  const auto add = [&](const Matrix& x) {
    const auto there = claims_at(c, x, {});
    if (!there) {
      ++found.refused;
      return std::vector<Claim>{};
    }
    found.claims.insert(found.claims.end(), there->begin(), there->end());
    return *there;
  };
  const std::vector<Claim> all = add(c.x);
  if (!climbs || all.empty()) return;
  const std::size_t target = dice.pick(static_cast<Index>(all.size()));
  const int steps = dice.chance(1.0 / 32) ? 200 : c.steps;
  Matrix x = climbed(c, c.x, target, steps, dice);
  if (c.ascended && dice.chance(1.0 / 8)) x = ascended(c, x, all[target].name);
  add(x);
}

// the others in the file of their name
const Families& all_families() {
  static const Families all{
      {"attention", attention_case},
      {"normed", normed_case},
      {"masked", masked_case},
      {"scored", scored_case},
      {"measure", measure_case},
      {"layer", [](Dice dice) { return layer_case(dice); }},
      {"masked-layer", [](Dice dice) { return layer_case(dice, true); }},
      {"part", part_case},
      {"stack", stack_case},
      {"many", many_case},
      {"proved-layer", proved_case}};
  return all;
}

Family family_named(const std::string& name) {
  std::string names;
  for (const Family& f : all_families()) {
    if (f.name == name) return f;
    names += (names.empty() ? "" : ", ") + f.name;
  }
  throw InputError("no family \"" + name + "\"; there are: " + names);
}

}  // namespace

Families families_named(const std::string& names) {
  Families out;
  std::istringstream all(names);
  for (std::string name; std::getline(all, name, ',');)
    out.push_back(family_named(name));
  return out;
}

std::vector<Case> draw_cases(std::uint64_t seed, std::uint64_t number,
                             const Families& families) {
  const Rng rng = Rng(seed).split(number);
  std::vector<Case> cases;
  if (!families.empty()) {
    cases.push_back(families[number % families.size()].draw(Dice(rng)));
    return cases;
  }
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

Examined examine(std::uint64_t seed, std::uint64_t number,
                 const Families& families, const Weakened& weakened) {
  Examined found;
  // drawn apart from the cases, so that these are the same climbed or not
  std::uint64_t stream = 1;
  const std::uint64_t in_turn = families.empty() ? 16 : families.size();
  for (const Case& c : draw_cases(seed, number, families)) {
    examine_case(c, number / in_turn % 5 < 3,
                 Dice(Rng(seed).split(number).split(stream)), found);
    stream = 3;
  }
  weaken(found.claims, weakened);
  return found;
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
