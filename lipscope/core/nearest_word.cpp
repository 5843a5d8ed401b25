#include "lipscope/core/nearest_word.h"

#include <algorithm>

namespace lipscope {

std::size_t edit_distance(const std::string& a, const std::string& b) {
  // rows i − 2, i − 1 and i of the table of distances of beginnings
  std::vector<std::size_t> before, last(b.size() + 1), now(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        now[j] = std::min(now[j], before[j - 2] + 1);
    }
    before = last;
    last = now;
  }
  return last[b.size()];
}

std::optional<std::string> nearest_word(const std::string& word,
                                        const std::vector<std::string>& words) {
  // a distance is as long as a word: a long one is nobody's slip
  constexpr std::size_t longest = 100;
  if (word.size() < 2 || word.size() > longest) return std::nullopt;
  std::optional<std::string> best;
  std::size_t least = 0;
  for (const std::string& candidate : words) {
    const std::size_t distance = edit_distance(word, candidate);
    if (best && distance >= least) continue;
    best = candidate;
    least = distance;
  }
  if (best && 3 * least <= std::max(best->size(), word.size())) return best;
  best.reset();
  for (const std::string& candidate : words) {
    if (candidate.rfind(word, 0) != 0) continue;
    if (best) return std::nullopt;
    best = candidate;
  }
  return best;
}

std::string did_you_mean(const std::string& word,
                         const std::vector<std::string>& words) {
  const std::optional<std::string> meant = nearest_word(word, words);
  return meant ? "; did you mean " + *meant + "?" : "";
}

std::string did_you_mean(const std::string& word,
                         const std::vector<std::string>& words,
                         const std::string& then) {
  const std::string question = did_you_mean(word, words);
  return question.empty() ? "; " + then : question + " " + then;
}

}  // namespace lipscope
