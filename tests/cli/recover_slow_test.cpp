// A small invertible model learns a text, and gives 256 characters of it back.

#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace lipscope::test {
namespace recover_slow_test {

TEST(InvertCommand, RecoversAPassageExactly) {
  const Folder folder;
  const std::string text = folder / "text.txt", model = folder / "model";
  // words in an order that does not repeat
  std::string written;
  const std::vector<std::string> words = {
      "river", "hill", "quiet", "runs", "by", "the", "stone", "and", "moves"};
  for (unsigned i = 0, state = 1; written.size() < 12000; ++i) {
    state = state * 1664525u + 1013904223u;
    written += words[(state >> 16) % words.size()] + (i % 7 == 6 ? ".\n" : " ");
  }
  std::ofstream(text) << written;
  const Outcome trained = lipscope(
      "train " + text + " --out " + model +
      " --invertible --layers 2 --width 32 --heads 2 --context 256 --batch 2 "
      "--steps 100 --warmup 20 --lr 0.01 --eval-every 60 --measure 0 --quiet "
      "--threads 1 --json");
  ASSERT_EQ(trained.code, 0) << trained.err;
  const auto lines = json_lines(trained.out);
  // it has learnt something: 19 characters, ln 19 = 2.94
  EXPECT_EQ(lines.back()["parameters"]["split"], "test");
  EXPECT_LT(lines.back()["value"].get<double>(), 2.5);

  const Outcome o = lipscope("invert " + model + " --text " + text +
                             " --length 256 --offset 5000 --samples 2 --json "
                             "--quiet --threads 1");
  ASSERT_EQ(o.code, 0) << o.err;
  const auto records = json_lines(o.out);
  ASSERT_EQ(records.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& d = records[i]["details"];
    EXPECT_EQ(d["text"], written.substr(5000 + 256 * i, 256));
    EXPECT_EQ(d["recovered"], 256);
    EXPECT_EQ(d["proved"], 256);
    EXPECT_LT(records[i]["upper"].get<double>(), d["margin"].get<double>());
    for (const auto& block : d["blocks"])
      EXPECT_LE(block["iterations"].get<int>(), block["a_priori"].get<int>());
  }
}

}  // namespace recover_slow_test
}  // namespace lipscope::test
