#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "lipscope/train/next_token.h"

namespace lipscope {

/// Counted groups of characters: what a table of a text predicts, without any
/// learning. An n-gram is n characters in a row, so that a 5-gram predicts a
/// character from the four before it.
///
/// Probabilities are smoothed as Witten and Bell do it [Witten91]: what was
/// seen after a group counts as often as it was seen, and each character that
/// was seen there at all counts once more for those that were not, which are
/// predicted from a group one shorter. With N(g) characters after the group g,
/// T(g) different ones among them, and g' the group without its first,
///
///   p(c | g) = (count(gc) + T(g) p(c | g'))/(N(g) + T(g)),
///
/// p(c | g) = p(c | g') where g was never seen, and p = 1/characters ahead of
/// the empty group. There is nothing to be tuned.
class NGrams {
 public:
  /// Counts groups of up to `longest` in the text, whose characters are
  /// numbered from 0 to `characters` − 1.
  NGrams(std::span<const int> text, Index characters, Index longest);

  Index longest() const { return longest_; }

  /// How well n-grams of 1, 2, …, `longest` predict a text; all of it is
  /// before a character, not a window of it.
  std::vector<TextScore> scores(std::span<const int> text) const;

  /// log p as logits, of n-grams of this n; the beginning of a sequence is
  /// predicted from shorter groups. Borrows this, which must outlive it.
  NextToken next(Index n) const;

 private:
  // A group of characters: what followed it.
  struct Group {
    Index seen = 0;                                  // N
    std::vector<std::pair<int, Index>> counts = {};  // of each different one
  };
  using Number = std::uint32_t;  // of a group
  static constexpr Number never = ~Number{0};

  // The group of one more character.
  Number longer(Number group, int character) const;
  // Those that end with the last character read, by their lengths 0, 1, …
  void read(std::vector<Number>& groups, int character) const;
  // p by one group more: from p(· | g') to p(· | g)
  void refine(Number group, Vector& p) const;

  Index characters_, longest_;
  std::vector<Group> groups_;
  std::unordered_map<std::uint64_t, Number> longer_;
};

}  // namespace lipscope
