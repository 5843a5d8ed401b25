// Which records stand for all where a page cannot have them all.

#include "lipscope/report/representatives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace lipscope::representatives_test {

using nlohmann::ordered_json;

ordered_json record(int layer, int sample, double lower) {
  return {{"command", "measure"},
          {"layer", layer},
          {"n", 8},
          {"sample", sample},
          {"lower", lower},
          {"upper", 1e9},
          {"parameters", {{"tolerance", 1e-5}, {"words_sha256", sample}}}};
}

TEST(Representatives, AreAllRecordsWhereThereAreFew) {
  Representatives chosen(10);
  for (int i = 0; i < 10; ++i) chosen.note(record(0, i, i), 0);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(chosen.keeps(i));
  EXPECT_EQ(chosen.of_each(), 0u);
}

TEST(Representatives, KeepTheLeastTheMiddleAndTheLargestOfEachGroup) {
  // two layers with 101 windows each, in an order that says nothing
  Representatives chosen(20);
  std::vector<std::pair<int, double>> all;
  for (int i = 0; i < 101; ++i)
    for (int layer = 0; layer < 2; ++layer)
      all.emplace_back(layer, layer * 1000 + i * 37 % 101);
  for (std::size_t i = 0; i < all.size(); ++i)
    chosen.note(record(all[i].first, static_cast<int>(i), all[i].second), 0);
  EXPECT_EQ(chosen.of_each(), 9u);
  for (int layer = 0; layer < 2; ++layer) {
    std::set<double> kept;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i].first == layer && chosen.keeps(i))
        kept.insert(all[i].second - layer * 1000);
    EXPECT_EQ(kept, (std::set<double>{0, 12, 25, 37, 50, 62, 75, 87, 100}));
  }
}

TEST(Representatives, DoNotStandForOtherQuestionsOrFiles) {
  Representatives chosen(4);
  for (int i = 0; i < 3; ++i) {
    chosen.note(record(0, i, 1), 0);
    chosen.note(record(0, i, 1), 1);
    ordered_json other = record(0, i, 1);
    other["parameters"]["tolerance"] = 1e-3;
    chosen.note(other, 0);
  }
  // three groups of three each
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(chosen.keeps(i)) << i;
}

TEST(Representatives, KeepEveryContradiction) {
  Representatives chosen(3);
  for (int i = 0; i < 100; ++i) {
    ordered_json r = record(0, i, 50 + i % 7);
    if (i == 41) r["upper"] = 1.0;
    chosen.note(r, 0);
  }
  EXPECT_TRUE(chosen.keeps(41));
  int kept = 0;
  for (int i = 0; i < 100; ++i) kept += chosen.keeps(i);
  EXPECT_EQ(kept, 4);
}

}  // namespace lipscope::representatives_test
