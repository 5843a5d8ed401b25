// Every option of every command changes the key of the records or cannot change
// a number: --resume never answers another question.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include "lipscope/core/rng.h"
#include "lipscope/io/npy.h"
#include "lipscope/io/safetensors.h"
#include "lipscope/record/key.h"
#include "tests/cli/option_table.h"
#include "tests/cli/program.h"
#include "tests/model/folders.h"

namespace lipscope::test {
namespace options_slow_test {

using nlohmann::json;
using nlohmann::ordered_json;

const char* const commands[] = {"measure", "bound",   "search",    "meanfield",
                                "invert",  "certify", "reproduce", "train",
                                "eval",    "sample",  "plan",      "merge",
                                "report",  "compare", "doctor"};

// the first long name of each option that the program says it has
std::set<std::string> options_of(const std::string& command) {
  const std::string help = lipscope(command + " --help").out;
  std::set<std::string> options;
  const std::regex line("(^|\n)  (-[a-z], ?)?(--[a-z0-9-]+)");
  for (std::sregex_iterator at(help.begin(), help.end(), line), end; at != end;
       ++at)
    options.insert((*at)[3]);
  return options;
}

std::string key_of_line(const json& record) {
  return key_of(ordered_json(record));
}

class Options : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new Folder;
    files_ = new std::map<std::string, std::string>;
    const Rng rng(5);
    layer("w", rng.split(0));
    layer("other w", rng.split(1));
    const Matrix x = gaussian(3, 4, rng.split(2));
    (*files_)["x"] = *folder_ / "x.npy";
    (*files_)["other x"] = *folder_ / "other_x.npy";
    write_npy(files_->at("x"), x);
    write_npy(files_->at("other x"), Matrix(x.colwise().reverse()));
    (*files_)["m"] = *folder_ / "m.npy";
    (*files_)["other m"] = *folder_ / "other_m.npy";
    const Matrix m =
        gaussian(3, small_config(Architecture::bert).width, rng.split(3));
    write_npy(files_->at("m"), m);
    write_npy(files_->at("other m"), Matrix(m.colwise().reverse()));
    model("model", 1);
    model("other model", 2);
    text("text", "a b c d e f g h ");
    text("other text", "b a c d e f g h ");
    text("ids", "1 2 3 4 5 6 7 8");
    text("other ids", "2 1 3 4 5 6 7 8");
    std::string book, other;
    for (int i = 0; i < 121; ++i) {
      book += "the cat sat. ";
      other += "a cat sat the. ";
    }
    text("book", book);
    text("other book", other);
    (*files_)["trained"] = *folder_ / "trained";
    ASSERT_EQ(lipscope(small_run("{book} --invertible", "trained")).code, 0);
  }
  static void TearDownTestSuite() {
    delete files_;
    delete folder_;
  }

  static void layer(const std::string& name, const Rng& rng) {
    (*files_)[name] =
        *folder_ / (std::to_string(files_->size()) + ".safetensors");
    write_safetensors(files_->at(name), {{"q", gaussian(4, 4, rng.split(0))},
                                         {"k", gaussian(4, 4, rng.split(1))},
                                         {"v", gaussian(4, 4, rng.split(2))},
                                         {"o", gaussian(4, 4, rng.split(3))},
                                         {"x", gaussian(3, 4, rng.split(4))}});
  }

  // a BERT of two layers whose words are letters
  static void model(const std::string& name, int seed) {
    const ModelConfig config = small_config(Architecture::bert);
    (*files_)[name] = *folder_ / ("model" + std::to_string(seed));
    std::filesystem::create_directory(files_->at(name));
    write_model(files_->at(name), config, random_tensors(config, seed));
    std::string words = "[UNK]\n";
    for (char c = 'a'; c < 'a' + 19; ++c) words += std::string(1, c) + "\n";
    std::ofstream(files_->at(name) + "/vocab.txt") << words;
  }

  static void text(const std::string& name, const std::string& content) {
    (*files_)[name] = *folder_ / (std::to_string(files_->size()) + ".txt");
    std::ofstream(files_->at(name), std::ios::binary) << content;
  }

  // {name} becomes the file of that name
  static std::string with_files(std::string arguments) {
    for (const auto& [name, file] : *files_)
      for (std::size_t at;
           (at = arguments.find("{" + name + "}")) != std::string::npos;)
        arguments.replace(at, name.size() + 2, file);
    return arguments;
  }

  static std::string small_run(const std::string& arguments,
                               const std::string& out) {
    std::string run = "train " + with_files(arguments);
    for (const auto& [option, value] :
         std::map<std::string, std::string>{{"--layers", "1"},
                                            {"--width", "8"},
                                            {"--heads", "2"},
                                            {"--context", "8"},
                                            {"--batch", "2"},
                                            {"--steps", "2"},
                                            {"--eval-every", "2"},
                                            {"--measure", "4"},
                                            {"--threads", "1"}})
      if (run.find(option + " ") == std::string::npos)
        run += " " + option + " " + value;
    return run + " --quiet --out " + (*folder_ / out);
  }

  // the records of a run, from its own file
  static std::vector<json> records_of(const OptionRow& row,
                                      const std::string& how,
                                      const std::string& file) {
    const Outcome run =
        lipscope(row.command + " " + with_files(row.base + " " + how) +
                 " --quiet --out " + file + " --resume");
    EXPECT_EQ(run.code, 0) << run.err;
    std::vector<json> records = json_lines(contents(file));
    // what only describes a figure has no number
    std::erase_if(records, [](const json& r) {
      return r["command"] == "reproduce" && !r["parameters"].contains("series");
    });
    return records;
  }

  // With `one` in the file, `two` is asked: it is answered as in a file of its
  // own, and what was there is left.
  static void expect_change(const OptionRow& row) {
    const Folder here;
    const std::vector<json> one = records_of(row, row.one, here / "a.jsonl"),
                            two = records_of(row, row.two, here / "b.jsonl"),
                            both = records_of(row, row.two, here / "a.jsonl");
    ASSERT_FALSE(one.empty());
    std::set<std::string> keys;
    for (const json& r : one) keys.insert(key_of_line(r));
    const auto added = std::count_if(
        two.begin(), two.end(),
        [&](const json& r) { return !keys.contains(key_of_line(r)); });
    EXPECT_GT(added, 0) << "the key does not know of it";
    ASSERT_EQ(both.size(), one.size() + static_cast<std::size_t>(added));
    for (std::size_t i = 0; i < one.size(); ++i) EXPECT_EQ(both[i], one[i]);
    for (const json& r : two)
      EXPECT_TRUE(std::any_of(
          both.begin(), both.end(),
          [&](const json& b) { return without_times(b) == without_times(r); }))
          << "not in the resumed file: " << r;
  }

  static void expect_same(const OptionRow& row) {
    EXPECT_FALSE(row.reason.empty());
    if (row.one.empty() && row.two.empty()) return;
    const Folder here;
    const auto one = records_of(row, row.one, here / "a.jsonl");
    const std::string before = contents(here / "a.jsonl");
    EXPECT_FALSE(before.empty());
    records_of(row, row.two, here / "a.jsonl");
    EXPECT_EQ(contents(here / "a.jsonl"), before);
    // and it does not change what is found
    const auto two = records_of(row, row.two, here / "b.jsonl");
    ASSERT_EQ(one.size(), two.size());
    for (std::size_t i = 0; i < one.size(); ++i)
      EXPECT_EQ(without_times(one[i]), without_times(two[i]));
  }

  // a run of train that was told something else; it stays what it was
  static void expect_refusal_to_go_on(const OptionRow& row) {
    const std::string out = "run" + row.option;
    const Outcome first = lipscope(small_run(row.base + " " + row.one, out));
    ASSERT_EQ(first.code, 0) << first.err;
    const std::string metrics = *folder_ / (out + "/metrics.jsonl"),
                      before = contents(metrics);
    const Outcome second =
        lipscope(small_run(row.base + " " + row.two, out) + " --resume");
    EXPECT_EQ(second.code, 2) << second.err;
    EXPECT_NE(second.err.find("was trained with"), std::string::npos)
        << second.err;
    EXPECT_EQ(contents(metrics), before);
  }

  static Folder* folder_;
  static std::map<std::string, std::string>* files_;
};

Folder* Options::folder_ = nullptr;
std::map<std::string, std::string>* Options::files_ = nullptr;

TEST_F(Options, OfTheProgramAreAllInTheTable) {
  std::map<std::string, std::set<std::string>> table;
  for (const OptionRow& row : option_table())
    EXPECT_TRUE(table[row.command].insert(row.option).second)
        << row.command << " " << row.option << " stands twice";
  for (const std::string command : commands)
    EXPECT_EQ(table[command], options_of(command)) << command;
  EXPECT_EQ(table.size(), std::size(commands));
}

void expect_of(const std::string& command,
               const std::function<void(const OptionRow&)>& check) {
  int rows = 0;
  for (const OptionRow& row : option_table()) {
    if (row.command != command) continue;
    SCOPED_TRACE(row.command + " " + row.base + " | " + row.one + " | " +
                 row.two);
    check(row);
    ++rows;
  }
  EXPECT_GT(rows, 5);
}

class OptionsOf : public Options,
                  public testing::WithParamInterface<const char*> {};

TEST_P(OptionsOf, ChangeTheKeyOrNothing) {
  expect_of(GetParam(), [](const OptionRow& row) {
    row.effect == Effect::changes_key ? expect_change(row) : expect_same(row);
  });
}

INSTANTIATE_TEST_SUITE_P(Commands, OptionsOf,
                         testing::Values("measure", "bound", "search",
                                         "meanfield", "invert", "certify",
                                         "reproduce"),
                         [](const auto& of) { return std::string(of.param); });

TEST_F(Options, OfTrainAreTheSameWhenARunGoesOn) {
  expect_of("train", [](const OptionRow& row) {
    if (row.effect == Effect::refused)
      expect_refusal_to_go_on(row);
    else
      EXPECT_FALSE(row.reason.empty());
  });
  // another text
  ASSERT_EQ(lipscope(small_run("{book}", "text")).code, 0);
  const Outcome other =
      lipscope(small_run("{other book}", "text") + " --resume");
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("text_sha256"), std::string::npos) << other.err;
}

TEST_F(Options, OfEvalAreInItsAnswer) {
  for (const OptionRow& row : option_table()) {
    if (row.command != "eval" || row.effect != Effect::changes_key) continue;
    const auto input = [&](const std::string& how) {
      const Outcome run =
          lipscope("eval --json " + with_files(row.base + " " + how));
      EXPECT_EQ(run.code, 0) << run.err;
      const json answer = json::parse(run.out);
      return answer["input"]["sha256"].get<std::string>() +
             answer["weights"].get<std::string>();
    };
    EXPECT_NE(input(row.one), input(row.two)) << row.option;
  }
}

}  // namespace options_slow_test
}  // namespace lipscope::test
