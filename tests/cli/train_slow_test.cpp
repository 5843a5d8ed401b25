// Training that is killed at any moment ends in the weights of training that
// was left alone.

#include <gtest/gtest.h>

#include "lipscope/core/rng.h"
#include "tests/cli/program.h"

namespace lipscope::test {
namespace {

TEST(Train, SurvivesTwentyKillsWithoutATrace) {
  const Folder folder;
  {
    std::ofstream text(folder / "text.txt");
    for (int i = 0; i < 200; ++i) text << "a river runs by the hill. ";
  }
  const auto train = [&](const std::string& name) {
    return "train " + (folder / "text.txt") + " --out " + (folder / name) +
           " --model contractive-l2 --layers 1 --width 16 --heads 2 --context "
           "16 --batch 4 --steps 600 --eval-every 3 --dropout 0.1 --measure 0 "
           "--threads 1 --quiet --resume";
  };
  ASSERT_EQ(lipscope(train("whole")).code, 0);

  Rng rng(7);
  int kills = 0;
  for (int i = 0; i < 20; ++i)
    kills +=
        kill_after(30 + static_cast<int>(rng.next() % 120), train("killed"));
  EXPECT_GE(kills, 3);  // or it was done before it could be killed
  const Outcome last = lipscope(train("killed"));
  ASSERT_EQ(last.code, 0) << last.err;

  for (const char* file :
       {"model.safetensors", "checkpoint-600.safetensors", "config.json"})
    EXPECT_EQ(contents(folder / ("killed/" + std::string(file))),
              contents(folder / ("whole/" + std::string(file))))
        << file;
  // but for the name of the folder and the speed
  const auto metrics = [&](const std::string& name) {
    auto lines = json_lines(contents(folder / (name + "/metrics.jsonl")));
    for (auto& line : lines) {
      line.erase("model");
      line.erase("command_line");
      line["parameters"].erase("experiment");
      if (!line.contains("details")) continue;
      line["details"].erase("title");
      line["details"].erase("characters_per_second");
    }
    return lines;
  };
  EXPECT_EQ(metrics("killed").size(), 3u + 200u * 4u + 1u);
  EXPECT_EQ(metrics("killed"), metrics("whole"));
}

}  // namespace
}  // namespace lipscope::test
