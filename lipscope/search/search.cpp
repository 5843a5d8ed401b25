#include "lipscope/search/search.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "lipscope/attention/common_mode.h"
#include "lipscope/attention/kinds.h"
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
  nudge_stream = 2
};

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
    std::vector<Start> starts = all_starts();
    result_.starts = static_cast<Index>(starts.size());
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
    result_.complete = result_.all.size() == starts.size();
    result_.cut = result_.cut || stopped_;
    return std::move(result_);
  }

 private:
  struct Start {
    std::string name;
    Matrix x;
    bool constructed = false;
    double steepness = -1.0;
  };

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

  std::vector<Start> all_starts() const {
    std::vector<Start> starts;
    for (Construction& c : constructions(weights_, options_, region_, o_.n))
      starts.push_back({std::move(c.name), std::move(c.x), true});
    const double radius = region_.bounded() ? region_.radius : 2.0 * natural_;
    for (Index r = 0; r < o_.restarts; ++r) {
      // the longest token at R, R/2, R/4, R/8 in turn
      Matrix z = gaussian(o_.n, weights_.features(),
                          Rng(o_.seed).split(token_stream).split(r));
      z = nearest({.centred = region_.centred}, std::move(z));
      const double longest = z.rowwise().norm().maxCoeff();
      if (longest > 0.0) z *= radius * std::pow(0.5, r % 4) / longest;
      starts.push_back({fmt::format("random {}", r), tokens_of(region_, z)});
    }
    return starts;
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
    const Ascent ascent = ascend(
        [&](const Matrix& x) {
          ++climbing_;
          return objective_(x);
        },
        region_, s.constructed ? nudged(s.x) : s.x,
        {.tolerance = s.x.size() > 4096 ? 1e-7 : 1e-12,
         .max_evaluations = o_.max_evaluations,
         .keep_going = [&] {
           cut = cut || !going() || elapsed() >= until;
           return !cut;
         }});

    Found before = measured_in_f64(s.x);
    Found found = measured_in_f64(ascent.x);
    found.climbed = found.value > before.value;
    found.converged = found.converged && ascent.converged;
    if (!found.climbed) std::swap(found, before);
    found.before = found.climbed ? before.value : found.value;
    found.start = s.name;
    found.cut = cut;
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

  // the norm at x from below, in f64, with its witness
  Found measured_in_f64(const Matrix& x) const {
    Found found;
    found.x = x;
    if (o_.norm == Norm::two) {
      const Measurement m =
          measure_norm(f32_, f64_, x,
                       {.seed = o_.seed,
                        .threads = options_.threads,
                        .common_shift = common_shift_of(f32_)});
      found.value = m.lower;
      found.value_by = m.lower_by;
      found.direction = m.direction;
      found.residual = m.residual;
      found.converged = m.converged;
    } else if (o_.norm == Norm::inf) {
      const InfNorm m =
          inf_norm(*f64_.linearize(x), {.threads = options_.threads});
      found.value = m.value;
      found.value_by = NormMethod::row_sweep;
      found.direction = m.direction;
      found.converged = true;
    } else {
      const auto j = f64_.linearize(x);
      const TokenNorm m =
          token_norm(*j, x.rows(),
                     {.seed = o_.seed,
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
