#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lipscope/search/ascent.h"
#include "lipscope/search/constructions.h"
#include "lipscope/spectral/norm_method.h"

namespace lipscope {

/// How far a search is.
struct SearchProgress {
  Index start = 0, starts = 0;  ///< climbing from number `start`
  Index evaluations = 0;        ///< of the norm, so far
  double best = 0.0;            ///< found so far
};

/// Tokens that were climbed to, and what attention does there.
struct Found {
  /// Name of a construction, "random 3" with what kind of random tokens it is,
  /// or "best, moved 3".
  std::string start;
  double before = 0.0;  ///< the norm at the start, in f64, from below
  /// The norm at x from below: ‖J v‖ for `direction` v, in f64. Not less than
  /// `before`: if climbing did not help, x is the start.
  double value = 0.0;
  NormMethod value_by = NormMethod::dense_gram;
  Matrix x;
  Vector direction;       ///< v
  double residual = 0.0;  ///< of v as a singular vector; norm 2 only
  Index evaluations = 0;
  bool climbed = false;    ///< x is not the start
  bool converged = false;  ///< the ascent came to rest and the norm was settled
  bool cut = false;        ///< keep_going or the budget ended the ascent
  bool independent = true;  ///< the start was not made from earlier results
};

struct SearchOptions {
  Norm norm = Norm::two;
  Index n = 1;  ///< tokens
  /// From random tokens, besides the constructions. As long as starts lead
  /// higher than before, or fewer than three reached the best, there are more
  /// rounds of as many (of eight where it is more), up to eight rounds. 0:
  /// none.
  Index restarts = 8;
  double budget = 0.0;  ///< seconds; 0: any number
  /// Of the norm, in each ascent. From a start there may be two: the second
  /// measures each token by its own length, if these are very different.
  int max_evaluations = 1000;
  std::uint64_t seed = 0;
  /// Called ahead of every evaluation; false ends the search, which is an
  /// outcome and not an error. May be empty.
  std::function<bool(const SearchProgress&)> keep_going = {};
  /// Told of every start that led higher than those before it. May be empty.
  std::function<void(const Found&)> improved = {};
};

struct SearchResult {
  Found best;
  /// What each start led to, in the order they were climbed from; without x
  /// and direction.
  std::vector<Found> all;
  Index evaluations = 0;
  Index starts = 0;       ///< that there were; `all` has fewer if it was cut
  bool complete = false;  ///< every start was climbed from
  /// How many independent starts there were, and from how many of them an
  /// ascent came within 1e-3 of the best value: 1 means that more starts may
  /// well find more.
  Index independent = 0, reached = 0;
  /// keep_going or the budget ended something: more could be found.
  bool cut = false;
};

/// Looks for tokens of the region at which the Jacobian of attention is
/// largest: ascents (see ascend) from all constructions and from random tokens
/// of several kinds and sizes, the steepest first; then rounds of further
/// random tokens and of the best tokens moved, until these lead no higher. The
/// result is a number from below over the region; how far it is from the
/// supremum is not known.
///
/// The same seed finds the same, on any number of threads, unless the budget
/// cuts it: one ascent may take half of the time that is left.
///
/// Dot-product, untied L2 and sigmoid attention are not Lipschitz over all of
/// space: they need a region that is bounded.
SearchResult search(const AttentionWeights& weights,
                    const AttentionOptions& options, const Region& region,
                    const SearchOptions& search_options);

}  // namespace lipscope
