#include "lipscope/attention/mask.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

namespace lipscope {
namespace mask_test {

// j is hidden from i, from the words of mask.h and from nothing else
bool hides(const Mask& m, Index i, Index j, Index n) {
  if (m.hides_later && j > i) return true;
  if (m.window && std::abs(i - j) >= *m.window) return true;
  return j < m.padding_before || n - 1 - j < m.padding_after;
}

bool sound(const Mask& m, Index n) {
  for (Index i = 0; i < n; ++i) {
    Index seen = 0;
    for (Index j = 0; j < n; ++j) seen += hides(m, i, j, n) ? 0 : 1;
    if (seen == 0) return false;
  }
  return true;
}

std::vector<Mask> masks_for(Index n) {
  std::vector<Mask> masks;
  for (const bool later : {false, true})
    for (Index window = 0; window <= n + 2; ++window)
      for (Index before = 0; before < n; ++before)
        for (Index after = 0; before + after < n; ++after) {
          Mask m{.hides_later = later,
                 .padding_before = before,
                 .padding_after = after};
          if (window > 0) m.window = window;
          masks.push_back(m);
        }
  return masks;
}

TEST(Mask, ShowsWhatItDoesNotHide) {
  int compared = 0;
  for (Index n = 1; n <= 8; ++n)
    for (const Mask& m : masks_for(n)) {
      if (!sound(m, n)) continue;
      Index most_seen = 0, most_seeing_one = 0;
      for (Index i = 0; i < n; ++i) {
        const TokenRange seen = visible(m, i, n), seers = seeing(m, i, n);
        Index sees = 0, seen_by = 0;
        for (Index j = 0; j < n; ++j) {
          EXPECT_EQ(!hides(m, i, j, n), seen.begin <= j && j < seen.end)
              << name_of(m) << ": token " << i << " of " << n << " and " << j;
          EXPECT_EQ(!hides(m, j, i, n), seers.begin <= j && j < seers.end)
              << name_of(m) << ": who sees token " << i << " of " << n;
          sees += hides(m, i, j, n) ? 0 : 1;
          seen_by += hides(m, j, i, n) ? 0 : 1;
          ++compared;
        }
        EXPECT_EQ(seen.size(), sees);
        EXPECT_EQ(seers.size(), seen_by);
        most_seen = std::max(most_seen, sees);
        most_seeing_one = std::max(most_seeing_one, seen_by);
      }
      EXPECT_EQ(most_visible(m, n), most_seen) << name_of(m) << ", " << n;
      EXPECT_EQ(most_seeing(m, n), most_seeing_one) << name_of(m) << ", " << n;
    }
  EXPECT_GT(compared, 10000);
}

TEST(Mask, ShowsAsManyTokensOfALongSequenceAsOfItsParts) {
  for (const bool later : {false, true})
    for (const Index window : {1, 2, 3, 7})
      for (const Index padding : {Index{0}, (window - 1) / 2, window - 1}) {
        const Mask m{.hides_later = later,
                     .window = window,
                     .padding_before = later ? 0 : padding,
                     .padding_after = padding};
        Index seen = 0, seers = 0;
        for (Index i = 0; i < 200; ++i) {
          seen = std::max(seen, visible(m, i, 200).size());
          seers = std::max(seers, seeing(m, i, 200).size());
        }
        for (const Index n : {Index{200}, Index{1} << 40}) {
          EXPECT_EQ(most_visible(m, n), seen) << name_of(m);
          EXPECT_EQ(most_seeing(m, n), seers) << name_of(m);
        }
      }
}

TEST(Mask, IsSoundWhereEveryTokenSeesOne) {
  for (Index n = 1; n <= 8; ++n)
    for (const Mask& m : masks_for(n))
      if (sound(m, n))
        EXPECT_NO_THROW(require_sound(m, n)) << name_of(m) << ", " << n;
      else
        EXPECT_THROW(require_sound(m, n), std::invalid_argument)
            << name_of(m) << ", " << n;
}

std::string refused(const Mask& m, Index n) {
  try {
    require_sound(m, n);
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "";
}

TEST(Mask, IsRefusedWithItsNumbers) {
  EXPECT_EQ(refused({.window = 0}, 4), "mask: a window of 0 tokens");
  EXPECT_EQ(refused({.padding_before = 1, .padding_after = 3}, 4),
            "mask: 4 tokens, of which 1 before and 3 after are padding");
  EXPECT_EQ(refused({.padding_before = -1}, 4),
            "mask: 4 tokens, of which -1 before and 0 after are padding");
  EXPECT_EQ(refused({.hides_later = true, .padding_before = 1}, 4),
            "mask: token 0 of 4 sees no token (causal, padding 1 before and 0 "
            "after)");
  EXPECT_EQ(refused({.window = 2, .padding_after = 2}, 6),
            "mask: token 5 of 6 sees no token (window 2, padding 0 before and "
            "2 after)");
}

TEST(Mask, HasTheNameOfItsParts) {
  EXPECT_EQ(name_of(Mask::none), "none");
  EXPECT_EQ(name_of(Mask::causal), "causal");
  EXPECT_EQ(name_of(Mask{.window = 64}), "window 64");
  EXPECT_EQ(name_of(Mask{.hides_later = true, .window = 64}),
            "causal, window 64");
  EXPECT_EQ(name_of(Mask{.hides_later = true, .padding_after = 3}),
            "causal, padding 0 before and 3 after");
}

TEST(Mask, WithoutAWindowThatHidesNothingIsTheSame) {
  EXPECT_EQ(at_length({.window = 5}, 5), Mask::none);
  EXPECT_EQ(at_length({.hides_later = true, .window = 9}, 5), Mask::causal);
  EXPECT_EQ(at_length({.window = 4}, 5), (Mask{.window = 4}));
  for (Index n = 1; n <= 6; ++n)
    for (const Mask& m : masks_for(n))
      for (Index i = 0; i < n; ++i)
        EXPECT_EQ(visible(at_length(m, n), i, n), visible(m, i, n))
            << name_of(m);
}

}  // namespace mask_test
}  // namespace lipscope
