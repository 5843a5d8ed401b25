#include "lipscope/search/search.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "lipscope/attention/common_mode.h"
#include "lipscope/attention/kinds.h"
#include "lipscope/attention/settled_scores.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/rng.h"
#include "lipscope/spectral/estimate.h"
#include "lipscope/spectral/inf_norm.h"
#include "lipscope/spectral/shift_direction.h"
#include "lipscope/spectral/token_norm.h"

namespace lipscope {
namespace {

// what the seed is split into
enum Stream : std::uint64_t {
  token_stream = 0,
  direction_stream = 1,
  nudge_stream = 2,
  move_stream = 3
};

constexpr double same = 1e-3;    // relative difference of values that are one
constexpr Index enough = 3;      // independent starts that reached the best
constexpr Index round_size = 8;  // further starts at a time, at most
constexpr Index most_rounds = 8;

// of a construction, before it is climbed from: among equal tokens the gradient
// never tells one from another
constexpr double nudge = 0.01;

class Search final {
 public:
  Search(const AttentionWeights& weights, const AttentionOptions& options,
         const Region& region, const SearchOptions& search_options)
      : weights_(weights),
        options_(options),
        region_(region),
        o_(search_options),
        f32_(weights, options),
        f64_(weights, options),
        objective_(weights, options, o_.norm,
                   Rng(o_.seed).split(direction_stream).next()),
        natural_(natural_radius(weights, options, region, o_.n)) {}

  SearchResult run() {
    climb_all(first_starts());
    const Index size = std::min(o_.restarts, round_size);
    for (Index round = 0; size > 0 && round < most_rounds; ++round) {
      if (stopped_ || !going()) break;
      const double before = result_.best.value;
      climb_all(further_starts(round * size, size));
      const bool higher = result_.best.value > before * (1.0 + same);
      if (!higher && count_reached() >= enough) break;
    }
    result_.complete = static_cast<Index>(result_.all.size()) == result_.starts;
    result_.cut = result_.cut || stopped_;
    for (const Found& f : result_.all) result_.independent += f.independent;
    result_.reached = count_reached();
    return std::move(result_);
  }

 private:
  struct Start {
    std::string name;
    Matrix x;
    bool constructed = false;
    bool independent = true;
    double steepness = -1.0;
  };

  // from how many independent starts the best was reached
  Index count_reached() const {
    return std::count_if(
        result_.all.begin(), result_.all.end(), [&](const Found& f) {
          return f.independent && f.value >= result_.best.value * (1.0 - same);
        });
  }

  // the steepest first
  void climb_all(std::vector<Start> starts) {
    result_.starts += static_cast<Index>(starts.size());
    for (Start& s : starts) {
      if (!going()) break;
      objective_.restart();
      s.steepness = objective_(s.x).value;
      ++result_.evaluations;
    }
    // those that were not looked at any more stay at the end
    std::stable_sort(starts.begin(), starts.end(),
                     [](const Start& a, const Start& b) {
                       return a.steepness > b.steepness;
                     });
    for (const Start& s : starts) {
      // even without any time there is something to say
      if (!result_.all.empty() && !going()) break;
      climb(s);
      ++progress_.start;
    }
  }

  // a hundredth of the longest token away, or less where scores are so large
  // that this would change more than a hundredth of one
  Matrix nudged(const Matrix& x) const {
    const Matrix z = coordinates_of(region_, x);
    const double longest = z.rowwise().norm().maxCoeff();
    if (longest == 0.0) return x;
    const double reach =
        nudge * std::min(longest, natural_ * natural_ / longest);
    const Matrix noise =
        gaussian(z.rows(), z.cols(), Rng(o_.seed).split(nudge_stream)) /
        std::sqrt(static_cast<double>(z.cols()));
    return tokens_of(region_, nearest(region_, z + reach * noise));
  }

  std::vector<Start> first_starts() const {
    std::vector<Start> starts;
    for (Construction& c : constructions(weights_, options_, region_, o_.n))
      starts.push_back({std::move(c.name), std::move(c.x), true});
    for (Index r = 0; r < o_.restarts; ++r) starts.push_back(random_start(r));
    return starts;
  }

  // every other one is the best tokens moved
  std::vector<Start> further_starts(Index first, Index count) const {
    std::vector<Start> starts;
    for (Index k = first; k < first + count; ++k)
      starts.push_back(k % 2 == 0 ? random_start(o_.restarts + k / 2)
                                  : moved_best(k));
    return starts;
  }

  double radius() const {
    return region_.bounded() ? region_.radius : 2.0 * natural_;
  }

  // Number r, of one of eight kinds. What attention feels of a token may be its
  // size (scores), its direction (cosine), or whether it is another one's
  // equal.
  Start random_start(Index r) const {
    Rng rng = Rng(o_.seed).split(token_stream).split(r);
    const Index n = o_.n;
    Matrix z = gaussian(n, weights_.features(), rng.split(0));
    z = nearest({.centred = region_.centred}, std::move(z));
    const auto name = [&](const char* what) {
      return fmt::format("random {}{}", r, what);
    };
    const auto unit_rows = [&] {
      for (Index i = 0; i < n; ++i)
        if (const double length = z.row(i).norm(); length > 0.0)
          z.row(i) /= length;
    };
    // the longest token at this share of the radius
    const auto scaled = [&](double part, std::string called) {
      const double longest = z.rowwise().norm().maxCoeff();
      if (longest > 0.0) z *= radius() * part / longest;
      return Start{std::move(called), tokens_of(region_, nearest(region_, z))};
    };
    switch (r % 8) {
      case 0:
        return scaled(1.0, name(""));
      case 1:
        unit_rows();
        return scaled(1.0, name(", at the boundary"));
      case 2:
        return scaled(0.25, name(""));
      case 3: {  // two or three tokens, each several times
        unit_rows();
        const std::uint64_t kinds = 2 + rng.next() % 2;
        const Matrix few = z;
        for (Index i = 0; i < n; ++i)
          z.row(i) =
              few.row(static_cast<Index>(rng.next() % kinds) % few.rows());
        return scaled(1.0, name(", repeated"));
      }
      case 4:  // lengths over four orders of magnitude
        unit_rows();
        for (Index i = 0; i < n; ++i)
          z.row(i) *= std::pow(10.0, -4.0 * rng.uniform());
        return scaled(1.0, name(", of many lengths"));
      case 5:  // one in three is not 0
        unit_rows();
        for (Index i = 1; i < n; ++i)
          if (rng.uniform() < 2.0 / 3.0) z.row(i).setZero();
        return scaled(1.0, name(", sparse"));
      case 6:
        return scaled(std::pow(10.0, -1.0 - 3.0 * rng.uniform()),
                      name(", small"));
      default:  // every entry as far from 0 as the others
        z = nearest({.centred = region_.centred},
                    z.unaryExpr([](double e) { return e < 0.0 ? -1.0 : 1.0; }));
        return scaled(1.0, name(", corner"));
    }
  }

  // the best tokens, each moved by 0.01 to 1 of its own length, which may be
  // far below that of others, or of the longest
  Start moved_best(Index k) const {
    Rng rng = Rng(o_.seed).split(move_stream).split(k);
    Matrix z = coordinates_of(region_, result_.best.x);
    const double reach = std::pow(10.0, -2.0 * rng.uniform()) /
                         std::sqrt(static_cast<double>(z.cols()));
    const bool own = rng.uniform() < 0.5;
    const double longest = z.rowwise().norm().maxCoeff();
    const Matrix noise = gaussian(z.rows(), z.cols(), rng.split(0));
    for (Index i = 0; i < z.rows(); ++i)
      z.row(i) += reach * (own ? z.row(i).norm() : longest) * noise.row(i);
    Start start{fmt::format("best, moved {}", k),
                tokens_of(region_, nearest(region_, z))};
    start.independent = false;
    return start;
  }

  double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         begin_)
        .count();
  }

  bool going() {
    progress_.starts = result_.starts;
    progress_.evaluations = result_.evaluations + climbing_;
    progress_.best = result_.best.value;
    if (o_.keep_going && !o_.keep_going(progress_)) stopped_ = true;
    if (o_.budget > 0.0 && elapsed() >= o_.budget) stopped_ = true;
    return !stopped_;
  }

  void climb(const Start& s) {
    const double until =
        o_.budget > 0.0 ? 0.5 * (elapsed() + o_.budget) : HUGE_VAL;
    climbing_ = 0;
    bool cut = false;
    objective_.restart();
    const auto ascent_from = [&](const Matrix& x, const Vector& sizes) {
      return ascend(
          [&](const Matrix& at) {
            ++climbing_;
            return objective_(at);
          },
          region_, x,
          {.tolerance = s.x.size() > 4096 ? 1e-7 : 1e-12,
           .max_evaluations = o_.max_evaluations,
           .sizes = sizes,
           .keep_going = [&] {
             cut = cut || !going() || elapsed() >= until;
             return !cut;
           }});
    };
    Ascent ascent = ascent_from(s.constructed ? nudged(s.x) : s.x, {});
    // again, each token by its own size, where these are very different
    if (const Vector sizes = own_sizes(ascent.x);
        !cut && sizes.minCoeff() < 0.1 * sizes.maxCoeff()) {
      Ascent again = ascent_from(ascent.x, sizes);
      if (again.value >= ascent.value) ascent = std::move(again);
    }

    Found before = measured_in_f64(s.x);
    Found found = measured_in_f64(ascent.x);
    found.climbed = found.value > before.value;
    found.converged = found.converged && ascent.converged;
    if (!found.climbed) std::swap(found, before);
    found.before = found.climbed ? before.value : found.value;
    found.start = s.name;
    found.cut = cut;
    found.independent = s.independent;
    result_.cut = result_.cut || cut;
    found.evaluations = climbing_;
    result_.evaluations += climbing_;
    climbing_ = 0;
    if (result_.all.empty() || found.value > result_.best.value) {
      result_.best = found;
      if (o_.improved) o_.improved(found);
    }
    found.x.resize(0, 0);
    found.direction.resize(0);
    result_.all.push_back(std::move(found));
  }

  // the lengths of tokens, none below a millionth of the longest
  Vector own_sizes(const Matrix& x) const {
    const Vector lengths = coordinates_of(region_, x).rowwise().norm();
    const double longest = lengths.maxCoeff();
    return lengths.cwiseMax(longest > 0.0 ? 1e-6 * longest : 1.0);
  }

  // the norm at x from below, in f64, with its witness; 0 where f64 is not
  // enough
  Found measured_in_f64(const Matrix& x) const {
    try {
      return measured(x);
    } catch (const TokensTooLarge&) {
      Found nothing;
      nothing.x = x;
      nothing.direction = Vector::Unit(x.size(), 0);
      return nothing;
    }
  }

  Found measured(const Matrix& x) const {
    Found found;
    found.x = x;
    if (o_.norm == Norm::two) {
      const Measurement m =
          measure_norm(f32_, f64_, x,
                       {.from_above = false,
                        .seed = o_.seed,
                        .threads = options_.threads,
                        .common_shift = common_shift_of(f32_)});
      found.value = m.lower;
      found.value_by = m.lower_by;
      found.direction = m.direction;
      found.residual = m.residual;
      found.converged = m.converged;
    } else if (o_.norm == Norm::inf && x.size() <= most_swept_rows) {
      const InfNorm m =
          inf_norm(*f64_.linearize(x), {.threads = options_.threads});
      found.value = m.value;
      found.value_by = NormMethod::row_sweep;
      found.direction = m.direction;
      found.converged = true;
    } else {
      // in the inf-norm every number is a token
      const auto j = f64_.linearize(x);
      const TokenNorm m =
          token_norm(*j, o_.norm == Norm::inf ? x.size() : x.rows(),
                     {.sweep = tokens_swept(o_.norm),
                      .seed = o_.seed,
                      .likely = shift_direction(f64_.common_shift(*j), 1)});
      found.value = m.value;
      found.value_by = NormMethod::alternating;
      found.direction = m.direction;
      found.converged = m.converged;
    }
    return found;
  }

  const AttentionWeights& weights_;
  const AttentionOptions& options_;
  const Region& region_;
  const SearchOptions& o_;
  MultiHeadAttention<float> f32_;
  MultiHeadAttention<double> f64_;
  Objective objective_;
  double natural_;  // the size of z that scores feel
  SearchResult result_;
  SearchProgress progress_;
  Index climbing_ = 0;  // evaluations of the ascent under way
  bool stopped_ = false;
  std::chrono::steady_clock::time_point begin_ =
      std::chrono::steady_clock::now();
};

}  // namespace

SearchResult search(const AttentionWeights& weights,
                    const AttentionOptions& options, const Region& region,
                    const SearchOptions& o) {
  require(o.n >= 1, "search: a sequence of {} tokens", o.n);
  require(o.restarts >= 0 && o.max_evaluations >= 1 && o.budget >= 0.0,
          "search: {} restarts, {} evaluations, a budget of {} s", o.restarts,
          o.max_evaluations, o.budget);
  require(region.radius > 0.0, "search: a radius of {}", region.radius);
  require_sound(options.mask, o.n);
  require(
      kind_of(options.kind).lipschitz_under(options.mask) || region.bounded(),
      "search: {} attention under the mask \"{}\" is not Lipschitz "
      "everywhere; it needs a radius",
      name_of(options.kind), name_of(options.mask));
  return Search(weights, options, region, o).run();
}

}  // namespace lipscope
