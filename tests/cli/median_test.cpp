// The median that tables print is the mean of the two middle ones.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/cli/program.h"

namespace lipscope::test {
namespace median_test {

// the two middle ones of an even number of records, as they are in the file
std::pair<double, double> middle(const std::string& file, const char* field) {
  std::vector<double> values;
  for (const auto& r : json_lines(contents(file)))
    if (r["command"] != "growth") values.push_back(r[field].get<double>());
  std::sort(values.begin(), values.end());
  EXPECT_EQ(values.size() % 2, 0u);
  const std::size_t half = values.size() / 2;
  return {values[half - 1], values[half]};
}

void expect_in(const std::string& text, const std::string& word, bool is_in) {
  EXPECT_EQ(text.find(word) != std::string::npos, is_in)
      << word << " in: " << text;
}

TEST(MedianOfATable, OfManyMeasurementsLiesBetweenTheTwoMiddleOnes) {
  const Folder folder;
  const std::string file = folder / "m.jsonl";
  const Outcome run = lipscope(
      "measure --random d=4,heads=1,scale=1 --length 3 --samples 102 --quiet "
      "--out " +
      file);
  ASSERT_EQ(run.code, 0) << run.err;
  const auto [low, high] = middle(file, "lower");
  ASSERT_LT(low, high);
  expect_in(run.out, fmt::format("{:.6g}", (low + high) / 2), true);
  expect_in(run.out, fmt::format("{:.6g}", high), false);
}

TEST(MedianOfATable, OfCertifiedRadiiIsThatOfTheRadiiNotOfTheirLogarithms) {
  const Folder folder;
  std::ofstream text(folder / "text.txt");
  for (int i = 0; i < 40; ++i) text << "a river runs by the hill. ";
  text.close();
  Outcome run = lipscope(
      "train " + (folder / "text.txt") + " --out " + (folder / "l2") +
      " --model l2 --norm none --layers 1 --width 8 --heads 2 --context 8 "
      "--batch 4 --steps 10 --eval-every 10 --threads 1 --measure 0 --quiet");
  ASSERT_EQ(run.code, 0) << run.err;
  const std::string file = folder / "c.jsonl";
  run = lipscope("certify " + (folder / "l2") + " --text " +
                 (folder / "text.txt") +
                 " --split test --positions 2 --quiet --out " + file);
  ASSERT_EQ(run.code, 0) << run.err;
  for (const char* side : {"lower", "upper"}) {
    const auto [low, high] = middle(file, side);
    ASSERT_LT(low, high);
    expect_in(run.out, fmt::format("{:.5g}", (low + high) / 2), true);
  }
}

}  // namespace median_test
}  // namespace lipscope::test
