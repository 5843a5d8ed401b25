// A window of a text is measured to the same bits, whichever windows the same
// command measures beside it.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/cli/program.h"
#include "tests/model/folders.h"
#include "tests/support/shared_files.h"

namespace lipscope {
namespace alone_test {

using nlohmann::json;

// all that a record says of its window, but for the time it took
std::vector<json> answers(const std::string& arguments, int n, int sample) {
  const test::Outcome run =
      test::lipscope("measure " + arguments + " --quiet --json");
  EXPECT_EQ(run.code, 0) << run.err;
  std::vector<json> found;
  for (const auto& line : test::json_lines(run.out)) {
    if (line.value("n", 0) != n || line.value("sample", -1) != sample ||
        !line.contains("lower"))
      continue;
    json kept;
    for (const char* field :
         {"layer", "head", "map", "n", "radius_max", "radius_rms", "lower",
          "lower_by", "upper", "upper_by", "upper_whp", "residual", "steps"})
      kept[field] = line.at(field);
    found.push_back(std::move(kept));
  }
  return found;
}

// Windows of 6 tokens that begin at token 12: the third of three, the only one
// of one, and the first after four windows of 3.
void expect_one_answer(const std::string& source) {
  const std::vector<json> alone =
      answers(source + " --lengths 6 --samples 1 --offset 12", 6, 0);
  ASSERT_FALSE(alone.empty()) << source;
  EXPECT_EQ(answers(source + " --lengths 6 --samples 3", 6, 2), alone);
  EXPECT_EQ(answers(source + " --lengths 3,6 --samples 4", 6, 0), alone);
  EXPECT_EQ(answers(source + " --lengths 6 --samples 10 --offset 6", 6, 1),
            alone);
}

TEST(Windows, AreMeasuredAsIfEachWereAlone) {
  for (const Architecture architecture :
       {Architecture::bert, Architecture::gpt2}) {
    ModelConfig config = test::small_config(architecture);
    config.width = 100;  // with 6 tokens more than is decomposed
    config.heads = config.key_heads = 4;
    config.head_width = 25;
    config.mlp_width = 150;
    const test::Folder folder;
    const test::TemporaryFolder model;
    test::write_model(model.path(), config, test::random_tensors(config, 3));
    std::ofstream ids(folder / "ids");
    for (int i = 0; i < 100; ++i) ids << (7 * i * i + 5 * i) % 20 << " ";
    ids.close();
    for (const std::string options : {"", " --map block --enclose 1.3",
                                      " --heads each --layers 1 --memory 1K"})
      expect_one_answer(std::string(model.path()) + " --ids " +
                        (folder / "ids") + options);
  }
}

TEST(Windows, OfMiniLMAreMeasuredAsIfEachWereAlone) {
  const std::filesystem::path shared = test::shared_folder().value_or("absent");
  if (!std::filesystem::exists(shared / "models/minilm-l6-v2-fp16") ||
      !std::filesystem::exists(shared / "data/alice29.txt"))
    GTEST_SKIP() << "no MiniLM and no text in " << shared.string()
                 << "; LIPSCOPE_MODELS can name the folder of the models";
  const std::string source =
      (shared / "models/minilm-l6-v2-fp16").string() + " --text " +
      (shared / "data/alice29.txt").string() + " --layers 3";
  expect_one_answer(source);
  EXPECT_EQ(answers(source + " --lengths 16 --samples 10", 16, 0),
            answers(source + " --lengths 16 --samples 1", 16, 0));
}

}  // namespace alone_test
}  // namespace lipscope
