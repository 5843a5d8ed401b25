// The obvious first command: a model and a text, however short.

#include "lipscope/core/rng.h"
#include "tests/cli/program.h"
#include "tests/model/folders.h"

namespace lipscope {
namespace short_text_test {

using test::expect_refusal;
using test::json_lines;
using test::Outcome;

// a BERT whose vocabulary is twenty letters
class ShortText : public testing::Test {
 protected:
  ShortText() {
    std::filesystem::create_directory(dir);
    test::write_model(dir, config, test::random_tensors(config, 1));
    std::string words = "[UNK]\n";
    for (char c = 'a'; c < 'a' + 19; ++c) words += std::string(1, c) + "\n";
    std::ofstream(dir + "/vocab.txt") << words;
  }

  std::string text(int tokens) {
    std::string all;
    for (int i = 0; i < tokens; ++i) all += std::string(1, 'a' + i % 19) + " ";
    std::ofstream(folder / "my.txt") << all;
    return folder / "my.txt";
  }

  Outcome measure(int tokens, const std::string& options = "") {
    return test::lipscope("measure " + dir + " --layers 0 --json --text " +
                          text(tokens) + " " + options);
  }

  static std::vector<std::pair<int, int>> lengths(const Outcome& o) {
    std::vector<std::pair<int, int>> found;
    for (const nlohmann::json& r : json_lines(o.out))
      if (r["command"] == "measure") found.emplace_back(r["n"], r["sample"]);
    return found;
  }

  const test::Folder folder;
  const std::string dir = folder / "m";
  const ModelConfig config = test::small_config(Architecture::bert);
};

TEST_F(ShortText, IsMeasuredAtTheLengthsItAllows) {
  const Outcome o = measure(29);
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(
      lengths(o),
      (std::vector<std::pair<int, int>>({{2, 0}, {4, 0}, {6, 0}, {8, 0}})));
  EXPECT_NE(o.err.find("my.txt has 29 tokens: lengths 2 to 8 in steps of 2, 1 "
                       "window of each"),
            std::string::npos)
      << o.err;
  EXPECT_EQ(measure(29, "--quiet").err, "");
}

TEST_F(ShortText, IsOneWindowWhereItIsTiny) {
  const Outcome o = measure(5);
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(lengths(o), (std::vector<std::pair<int, int>>({{5, 0}})));
  expect_refusal(measure(0), 2, {"my.txt", "no tokens"});
  expect_refusal(measure(5, "--offset 5"), 2, {"--offset 5", "5 tokens"});
}

TEST_F(ShortText, KeepsWhatIsAskedForOrSaysWhatWorks) {
  EXPECT_EQ(lengths(measure(30, "--lengths 4,6")).size(), 6u);  // 3 of each
  const Outcome o = measure(30, "--lengths 4,6 --samples 4");
  expect_refusal(o, 2,
                 {"my.txt has 30 tokens, and 40 are needed",
                  "This works:", "--lengths 2:12:2 --samples 1"});
  // and it does
  const std::string begin = std::string(LIPSCOPE_PROGRAM) + " ";
  const std::size_t at = o.err.find(begin);
  ASSERT_NE(at, std::string::npos) << o.err;
  const std::string command = o.err.substr(at + begin.size());
  const Outcome works = test::lipscope(command.substr(0, command.find('\n')));
  EXPECT_EQ(works.code, 0) << works.err;
  EXPECT_EQ(works.err, "");
  EXPECT_EQ(lengths(works).size(), 5u);
}

TEST_F(ShortText, IsNoLongerThanTheModelReads) {
  const std::string most = std::to_string(config.positions);
  const std::string more = std::to_string(config.positions + 1);
  expect_refusal(measure(1000, "--samples 1 --lengths 2," + more), 2,
                 {"--lengths 2," + more, "window of " + more,
                  "the model has " + most + " positions"});
  const Outcome o = measure(3000);
  ASSERT_EQ(o.code, 0) << o.err;
  for (const auto& [n, sample] : lengths(o)) EXPECT_LE(n, config.positions);
}

TEST_F(ShortText, ServesMeanfieldAndInvertToo) {
  for (const std::string command : {"meanfield", "invert --norm 2"}) {
    const Outcome o =
        test::lipscope(command + " " + dir + " --layers 0 --text " + text(5));
    EXPECT_EQ(o.code, 0) << command << o.err;
    EXPECT_NE(o.err.find("has 5 tokens: length 5, 1 window"), std::string::npos)
        << o.err;
  }
}

TEST_F(ShortText, AFolderWithAttentionAloneNamesWhatWorks) {
  test::Tensors some = test::random_tensors(config, 1);
  std::erase_if(some, [](const auto& t) {
    return t.first.find("word_embeddings") != std::string::npos;
  });
  test::write_model(dir, config, some);
  expect_refusal(measure(30), 2,
                 {"word_embeddings", "--input X.npy", "--length N --radius ln",
                  "bound and search"});
  for (const std::string& works :
       {"measure " + dir + " --length 4 --radius ln", "bound " + dir})
    EXPECT_EQ(test::lipscope(works + " --layers 0").code, 0) << works;
}

}  // namespace short_text_test
}  // namespace lipscope
