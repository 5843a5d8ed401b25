// A hundred kills at random moments: whatever was written stays, and the run
// that goes on ends with the same numbers as one that was left alone.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <set>

#include "lipscope/core/rng.h"
#include "tests/cli/program.h"

namespace lipscope::test {
namespace kills_slow_test {

using nlohmann::json;

constexpr int kills_of_each = 25;  // four commands: a hundred in all

/// The complete lines of a file. What stands behind the last newline is torn.
std::string complete_lines(const std::string& path) {
  const std::string text = contents(path);
  const std::size_t end = text.rfind('\n');
  return end == std::string::npos ? "" : text.substr(0, end + 1);
}

/// One command that can be killed and can go on.
struct Work {
  /// Its arguments when results go to the folder of this name; with --resume.
  std::function<std::string(const std::string&)> arguments;
  /// What is on the disk there and no kill may shorten.
  std::function<std::string(const std::string&)> kept;
  /// Results in the folder of this name, without times and names.
  std::function<json(const std::string&)> results;
};

/// Kills the command at random moments of its run until it was alive at
/// `kills_of_each` of them, and results were on the disk at a fifth of these.
/// After each kill all that was kept before is there
/// still. Whenever the command ends by itself, its results are
/// those of the run that was left alone, and the next one begins from nothing.
void survives_kills(const Work& work, std::uint64_t seed) {
  const auto start = std::chrono::steady_clock::now();
  const Outcome whole = lipscope(work.arguments("whole"));
  ASSERT_EQ(whole.code, 0) << whole.err;
  const double milliseconds = std::chrono::duration<double, std::milli>(
                                  std::chrono::steady_clock::now() - start)
                                  .count();
  const json expected = work.results("whole");
  ASSERT_FALSE(expected.empty());

  Rng rng(seed);
  std::string name = "killed-0";
  int kills = 0, with_something_kept = 0, ends = 0;
  const auto enough = [&] {
    return kills >= kills_of_each && with_something_kept >= kills_of_each / 5;
  };
  for (int round = 0; !enough(); ++round) {
    ASSERT_LT(round, 40 * kills_of_each)
        << "killed " << kills << " times, " << with_something_kept
        << " with results on the disk";
    const std::string before = work.kept(name);
    const double moment =
        milliseconds * static_cast<double>(rng.next() % 1000) / 1000.0;
    const bool killed =
        kill_after(static_cast<int>(moment), work.arguments(name));
    const std::string after = work.kept(name);
    ASSERT_TRUE(after.starts_with(before))
        << "a kill lost something of " << name;
    if (killed) {
      ++kills;
      with_something_kept += !after.empty();
      continue;
    }
    ++ends;
    ASSERT_EQ(work.results(name), expected) << name;
    name = "killed-" + std::to_string(ends);
  }
  const Outcome last = lipscope(work.arguments(name));
  ASSERT_EQ(last.code, 0) << last.err;
  EXPECT_EQ(work.results(name), expected) << name;
  std::printf("%d kills, %d of them with results on the disk; %d runs ended\n",
              kills, with_something_kept, ends + 1);
}

/// The records of a journal, without times, each once and in one order: a run
/// that goes on writes what is missing behind what is there.
json records_of(const std::string& path) {
  std::set<json> sorted;
  for (const json& record : json_lines(contents(path)))
    sorted.insert(without_times(record));
  return json(std::vector<json>(sorted.begin(), sorted.end()));
}

class Kills : public testing::Test {
 protected:
  /// A command that writes records to --out.
  Work with_journal(const std::string& command) const {
    return {.arguments =
                [=, this](const std::string& name) {
                  return command + " --quiet --resume --out " +
                         (folder / (name + ".jsonl"));
                },
            .kept =
                [this](const std::string& name) {
                  return complete_lines(folder / (name + ".jsonl"));
                },
            .results =
                [this](const std::string& name) {
                  return records_of(folder / (name + ".jsonl"));
                }};
  }

  void write_text() const {
    std::ofstream text(folder / "text.txt");
    const char* const places[] = {"the hill", "a mill", "the old town"};
    for (int i = 0; i < 200; ++i)
      text << "a river runs by " << places[(i * i + i / 3) % 3] << ". ";
  }

  std::string train(const std::string& out) const {
    return "train " + (folder / "text.txt") + " --out " + (folder / out) +
           " --model l2 --norm none --layers 1 --width 16 --heads 2 "
           "--context 16 --batch 4 --dropout 0.1 --threads 1 --quiet ";
  }

  Folder folder;
};

TEST_F(Kills, MeasureLosesNothing) {
  survives_kills(with_journal("measure --random d=48,heads=4,scale=0.2 "
                              "--lengths 4:40:4 --samples 4 --enclose 1.2"),
                 1);
}

TEST_F(Kills, SearchLosesNothing) {
  survives_kills(
      with_journal("search --random d=4,heads=2,scale=1 --heads each "
                   "--lengths 3,4,5,6 --radius 2 --restarts 3 "
                   "--max-evaluations 60 --budget 0"),
      2);
}

TEST_F(Kills, CertifyLosesNothing) {
  write_text();
  ASSERT_EQ(
      lipscope(train("model") + "--steps 60 --eval-every 60 --measure 0").code,
      0);
  survives_kills(
      with_journal("certify " + (folder / "model") + " --text " +
                   (folder / "text.txt") +
                   " --split test --positions 120 --targets 3 --threads 1"),
      3);
}

TEST_F(Kills, TrainEndsWithTheSameWeights) {
  write_text();
  const Work work = {
      .arguments =
          [this](const std::string& name) {
            return train(name) +
                   "--steps 240 --eval-every 8 --measure 8 --resume";
          },
      // a point for each step of the last checkpoint: lines behind it are
      // written again
      .kept =
          [this](const std::string& name) {
            for (int step = 240; step > 0; step -= 8)
              if (std::filesystem::exists(folder / (name + "/checkpoint-" +
                                                    std::to_string(step) +
                                                    ".safetensors")))
                return std::string(step, '.');
            return std::string();
          },
      .results =
          [this](const std::string& name) {
            json lines = json::array();
            for (json line :
                 json_lines(contents(folder / (name + "/metrics.jsonl")))) {
              // what names the folder, and how fast it was
              for (const char* field : {"model", "command_line", "seconds"})
                line.erase(field);
              line["parameters"].erase("experiment");
              if (line.contains("details"))
                for (const char* field : {"title", "characters_per_second"})
                  line["details"].erase(field);
              lines.push_back(line);
            }
            const auto file = [&](const char* which) {
              return std::hash<std::string>()(
                  contents(folder / (name + "/" + which)));
            };
            return json{{"metrics", lines},
                        {"best", file("model.safetensors")},
                        {"last", file("checkpoint-240.safetensors")},
                        {"config", file("config.json")}};
          }};
  survives_kills(work, 4);
}

}  // namespace kills_slow_test
}  // namespace lipscope::test
