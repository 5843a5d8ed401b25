#include "lipscope/text/windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace lipscope {
namespace {

constexpr Index usual_longest = 98, usual_samples = 10;

// 2 + 4 + … + longest
Index sum_to(Index longest) { return longest * (longest + 2) / 4; }

Windows even_lengths(Index longest, Index samples) {
  Windows w{.lengths = {}, .samples = samples};
  for (Index n = 2; n <= longest; n += 2) w.lengths.push_back(n);
  return w;
}

// the longest even length at which all of them fit; 0 if not even 2 does
Index longest_even(Index tokens, Index positions, Index samples) {
  Index longest = 0;
  while (longest + 2 <= std::min(usual_longest, positions) &&
         samples * sum_to(longest + 2) <= tokens)
    longest += 2;
  return longest;
}

// the lengths are a, a + s, a + 2 s, …
std::optional<Index> step_of(const std::vector<Index>& lengths) {
  if (lengths.size() < 3) return std::nullopt;
  const Index step = lengths[1] - lengths[0];
  for (std::size_t i = 1; i < lengths.size(); ++i)
    if (lengths[i] - lengths[i - 1] != step) return std::nullopt;
  return step > 0 ? std::optional(step) : std::nullopt;
}

}  // namespace

Index Windows::tokens() const {
  return samples * std::accumulate(lengths.begin(), lengths.end(), Index{0});
}

Windows usual_windows() { return even_lengths(usual_longest, usual_samples); }

std::optional<Windows> windows_within(
    Index tokens, Index positions,
    const std::optional<std::vector<Index>>& lengths,
    const std::optional<Index>& samples) {
  if (tokens < 1) return std::nullopt;
  if (lengths) {
    Windows w{.lengths = *lengths, .samples = samples.value_or(usual_samples)};
    if (!samples)
      while (w.samples > 1 && w.tokens() > tokens) --w.samples;
    if (w.tokens() > tokens ||
        *std::max_element(lengths->begin(), lengths->end()) > positions)
      return std::nullopt;
    return w;
  }
  if (samples) {
    if (const Index longest = longest_even(tokens, positions, *samples))
      return even_lengths(longest, *samples);
    const Index n = std::min(tokens / *samples, positions);
    return n < 1 ? std::nullopt
                 : std::optional(Windows{.lengths = {n}, .samples = *samples});
  }
  // many windows are of use where they are not very short
  const struct {
    Index samples, least;
  } steps[] = {{usual_samples, 32}, {5, 20}, {3, 12}, {2, 12}, {1, 8}};
  for (const auto& step : steps) {
    const Index longest = longest_even(tokens, positions, step.samples);
    if (longest >= std::min(step.least, positions - positions % 2) &&
        longest >= 8)
      return even_lengths(longest, step.samples);
  }
  return Windows{.lengths = {std::min(tokens, positions)}, .samples = 1};
}

std::string in_words(const Windows& w) {
  const std::string lengths =
      step_of(w.lengths)
          ? fmt::format("lengths {} to {} in steps of {}", w.lengths.front(),
                        w.lengths.back(), *step_of(w.lengths))
      : w.lengths.size() == 1
          ? fmt::format("length {}", w.lengths.front())
          : fmt::format("lengths {}", fmt::join(w.lengths, ", "));
  if (w.lengths.size() == 1)
    return fmt::format("{}, {} window{}", lengths, w.samples,
                       w.samples == 1 ? "" : "s");
  return fmt::format("{}, {} window{} of each", lengths, w.samples,
                     w.samples == 1 ? "" : "s");
}

std::string as_options(const Windows& w) {
  const std::optional<Index> step = step_of(w.lengths);
  return fmt::format("--lengths {} --samples {}",
                     step ? fmt::format("{}:{}:{}", w.lengths.front(),
                                        w.lengths.back() + *step, *step)
                          : fmt::format("{}", fmt::join(w.lengths, ",")),
                     w.samples);
}

}  // namespace lipscope
