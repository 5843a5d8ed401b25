#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lipscope/attention/multi_head.h"
#include "tests/campaign/dice.h"

/// Adversarial cases for everything that is proved from above: random small
/// problems, some of them climbed, at which a measured number is compared with
/// each bound that speaks of it.
namespace lipscope::campaign {

/// One comparison: what was reached, and what the bound of this name allows.
struct Claim {
  std::string name;
  double reached = 0.0, allowed = 0.0;
  /// Whether attention is neither uniform nor of one token here: where it is,
  /// many bounds are exact, which says little about them.
  bool mixed = true;

  /// reached/allowed; 0 where nothing was reached, +∞ above a bound of 0, and
  /// not a number where one of them is none.
  double ratio() const;
};

/// What measuring in f64 may be wrong by, relatively, at logits up to 10⁶: a
/// ratio above 1 by more than this is a violation.
inline constexpr double rounding = 1e-8;

/// One problem: weights and where its input may be.
struct Case {
  std::string what;  ///< for people: kind, sizes, structure
  Matrix x;          ///< the input it starts from
  /// The admissible input nearest to x, or near it.
  std::function<Matrix(Matrix)> confined;
  /// All comparisons at x, or number `only` of them alone; their names and
  /// their order do not depend on x.
  std::function<std::vector<Claim>(const Matrix& x,
                                   std::optional<std::size_t> only)>
      claims;
  /// Climbs by gradients from x to where the named claim is nearer to its
  /// bound; empty where there is no gradient.
  std::function<Matrix(const Matrix& x, const std::string& claim)> ascended =
      {};
  int steps = 16;  ///< of a climb, most often
};

/// One family of problems.
struct Family {
  std::string name;
  Case (*draw)(Dice dice);
};
using Families = std::vector<Family>;

/// "attention,many,many": a family that is named twice has twice the cases.
/// InputError, with all names, for one that there is not; empty for "".
Families families_named(const std::string& names);

/// The cases of this number in the campaign with this seed; nothing else
/// enters. One of the given families in turn. Where none are given, one of the
/// first ones in turn, and with every other number one more: under a window or
/// padding, or with scores that are normed or know distances.
std::vector<Case> draw_cases(std::uint64_t seed, std::uint64_t number,
                             const Families& families = {});

/// A bound that is to be made wrong, to see whether it is noticed.
struct Weakened {
  std::string name;
  double factor = 1.0;
};

/// Whether the scores of some row of some head lie between ½ and 20 apart
/// (rotations are not looked at).
bool scores_differ(const AttentionWeights& weights,
                   const AttentionOptions& options, const Matrix& x);

/// What was compared. Where rounding leaves scores unknown the library refuses
/// to measure: such an input is counted and not compared.
struct Examined {
  std::vector<Claim> claims;
  std::uint64_t refused = 0;
};

/// The cases at their first inputs and, for three of five, where climbing
/// towards one of their bounds led: all claims at each of the two.
Examined examine(std::uint64_t seed, std::uint64_t number,
                 const Families& families = {}, const Weakened& weakened = {});

// The families of cases, each in the file of its name.
Case attention_case(Dice dice);  ///< dot, rotary, L2, cosine, sigmoid
Case normed_case(Dice dice);     ///< dot-product after a norm layer
Case masked_case(Dice dice);     ///< every kind under a window or padding
Case scored_case(Dice dice);     ///< with q/k-norm or a bias by distance
Case measure_case(Dice dice);    ///< tokens that weigh, whole and cut
/// Residuals and blocks of a transformer, on request under a window or padding.
Case layer_case(Dice dice, bool masked = false);
Case part_case(Dice dice);    ///< norms of weights, norm layers, MLPs
Case stack_case(Dice dice);   ///< whole small models, certified radii
Case many_case(Dice dice);    ///< every kind, 10 to 65 tokens
Case proved_case(Dice dice);  ///< what is proved of layers at an input

}  // namespace lipscope::campaign
