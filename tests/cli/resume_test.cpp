// --resume: what is known is not done again, and nothing else is taken for it.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "lipscope/io/npy.h"
#include "tests/cli/program.h"
#include "tests/model/folders.h"

namespace lipscope {
namespace resume_test {

using nlohmann::json;
using test::contents;
using test::json_lines;
using test::Outcome;
using test::without_times;

class Resume : public testing::Test {
 protected:
  Outcome run(const std::string& arguments) const {
    const Outcome o = test::lipscope(arguments + " --resume --out " + out);
    EXPECT_EQ(o.code, 0) << o.err;
    return o;
  }
  std::vector<json> lines() const { return json_lines(contents(out)); }

  // the first lines of the file, as a kill leaves them
  void cut_after(int count) const {
    std::istringstream whole(contents(out));
    std::string kept, line;
    for (int i = 0; i < count && std::getline(whole, line); ++i)
      kept += line + "\n";
    std::ofstream(out) << kept;
  }

  const test::Folder folder;
  const std::string out = folder / "r.jsonl";
};

// 9.51302 with --tau 3, 13.827 with --tau 5
TEST_F(Resume, TellsTheScalesOfCosineApart) {
  const std::string cosine =
      "measure --random d=8,heads=2,scale=1 --length 6 --kind cosine ";
  run(cosine + "--tau 3");
  run(cosine + "--tau 5");
  ASSERT_EQ(lines().size(), 2u);
  EXPECT_NEAR(lines()[0]["lower"], 9.51302, 1e-5);
  EXPECT_NEAR(lines()[1]["lower"], 13.827, 1e-3);
}

TEST_F(Resume, ShowsAllRowsInTheirOrderAndSaysWhatIsLeft) {
  const std::string sweep =
      "measure --random d=8,heads=2 --heads each --lengths 2,3,4,5,6 --json";
  const std::string whole = run(sweep).out;
  ASSERT_EQ(json_lines(whole).size(), 10u + 2u);  // and two fits
  cut_after(7);
  const Outcome rest = run(sweep);
  EXPECT_NE(rest.err.find("7 of 10 answers are in " + out + "; 3 still to do"),
            std::string::npos)
      << rest.err;
  const auto first = json_lines(whole), second = json_lines(rest.out);
  ASSERT_EQ(second.size(), first.size());
  for (std::size_t i = 0; i < first.size(); ++i)
    EXPECT_EQ(without_times(second[i]), without_times(first[i])) << i;
  // what was found has even its seconds
  EXPECT_EQ(second[6], first[6]);
  EXPECT_EQ(run(sweep).out, rest.out);
  EXPECT_EQ(lines().size(), 12u);
  EXPECT_EQ(test::lipscope(sweep + " --quiet --resume --out " + out).err, "");
}

TEST_F(Resume, PrintsTheSameTableAsAnUndisturbedRun) {
  for (const std::string command :
       {"measure --random d=8,heads=2 --lengths 2,3,4,5,6",
        "bound --random d=8,heads=2 --lengths 4,5 --radius 1",
        "search --random d=2,heads=1,scale=1 --lengths 2,3 --radius 1 "
        "--restarts 2 --max-evaluations 20 --budget 0",
        "meanfield --random d=4,heads=2,scale=1 --length 3 --samples 2",
        "invert --random d=4,heads=2,scale=0.4 --lengths 3,4"}) {
    std::filesystem::remove(out);
    run(command);
    // all is known: the numbers are those of the file, its seconds too
    const std::string table = run(command).out;
    EXPECT_NE(table, "") << command;
    cut_after(1);
    const auto before = lines().at(0);
    run(command);
    EXPECT_EQ(lines().at(0), before);
    // other seconds in as many lines
    const auto lines_of = [](const std::string& text) {
      return std::count(text.begin(), text.end(), '\n');
    };
    EXPECT_EQ(lines_of(run(command).out), lines_of(table)) << command;
  }
}

TEST_F(Resume, DoesAgainWhatABudgetCut) {
  const std::string search =
      "search --random d=3,heads=1,scale=1 --length 4 --radius 1.5 --restarts "
      "2 --max-evaluations 30 ";
  run(search + "--budget 0.000001");
  const auto cut = lines().back();
  EXPECT_EQ(cut["cut"], "budget");
  EXPECT_EQ(cut["status"], "not-converged");
  EXPECT_GT(cut["details"]["starts_left"], 0);

  const Outcome again = run(search + "--budget 0");
  EXPECT_NE(again.err.find("0 of 1 answers"), std::string::npos) << again.err;
  const auto whole = lines().back();
  EXPECT_FALSE(whole.contains("cut"));
  EXPECT_EQ(whole["details"]["starts_left"], 0);
  const Outcome alone = test::lipscope(search + "--budget 0 --json");
  EXPECT_EQ(without_times(whole), without_times(json_lines(alone.out).back()));

  // a budget that was enough asks the same
  const std::string file = contents(out);
  run(search + "--budget 1000");
  EXPECT_EQ(contents(out), file);
}

TEST_F(Resume, MeasuresAgainWhatABudgetCut) {
  const std::string layer = "measure --random d=64,heads=4 --length 64 ";
  run(layer + "--budget 0.000001");
  for (const auto& r : lines()) EXPECT_EQ(r["cut"], "budget");
  const std::size_t before = lines().size();
  run(layer);
  ASSERT_EQ(lines().size(), before + 1);
  EXPECT_FALSE(lines().back().contains("cut"));
  EXPECT_EQ(lines().back()["status"], "converged");
}

// a record that less was asked of is no answer
TEST_F(Resume, EnclosesWhatWasNotEnclosed) {
  const std::string layer = "measure --random d=32,heads=2 --length 32 ";
  run(layer);
  EXPECT_FALSE(lines()[0]["upper_whp"].is_null());
  run(layer + "--enclose 1.5");
  ASSERT_EQ(lines().size(), 2u);
  EXPECT_LE(lines()[1]["upper_whp"].get<double>(),
            1.5 * lines()[1]["lower"].get<double>());
}

TEST_F(Resume, FitsOtherPointsInAnotherRecord) {
  const std::string sweep = "measure --random d=8,heads=2 --lengths ";
  run(sweep + "2,3,4,5,6");
  run(sweep + "2,3,4,5,6,7");
  run(sweep + "2,3,4,5,6,7");
  std::vector<json> fits;
  for (const json& r : lines())
    if (r["command"] == "growth") fits.push_back(r);
  ASSERT_EQ(fits.size(), 2u);
  EXPECT_EQ(fits[0]["points"], 5);
  EXPECT_EQ(fits[1]["points"], 6);
  EXPECT_EQ(lines().size(), 6u + 2u);
}

TEST_F(Resume, WritesTheDirectionOfAKnownAnswer) {
  for (const std::string command :
       {"measure --random d=4,heads=2 --length 3",
        "search --random d=2,heads=1,scale=1 --length 3 --radius 1 --restarts "
        "1 --max-evaluations 10 --budget 0",
        "meanfield --random d=4,heads=2,scale=1 --length 3"}) {
    std::filesystem::remove(out);
    run(command);
    const std::string file = contents(out), v = folder / "v.npy";
    std::filesystem::remove(v);
    run(command + " --save-direction " + v);
    EXPECT_EQ(read_npy(v).rows(), 3) << command;
    EXPECT_EQ(contents(out), file) << command;
  }
}

TEST_F(Resume, OfARepeatedLengthWritesNothingTwice) {
  const std::string sweep = "measure --random d=4,heads=2 --lengths 3,3";
  EXPECT_EQ(json_lines(run(sweep + " --json").out).size(), 2u);
  EXPECT_EQ(lines().size(), 1u);
  EXPECT_EQ(json_lines(run(sweep + " --json").out).size(), 2u);
  EXPECT_EQ(lines().size(), 1u);
}

// ---- models: by their content, wherever they are

class ResumeModel : public Resume {
 protected:
  ResumeModel() {
    write_folder(config);
    std::ofstream(folder / "text") << "a b c d e f g h i j k l ";
    std::ofstream(folder / "copy") << "x a b c d e f g h i j k l ";
  }

  void write_folder(const ModelConfig& c) const {
    std::filesystem::create_directory(dir);
    test::write_model(dir, c, test::random_tensors(config, 1));
    std::ofstream words(dir + "/vocab.txt");
    words << "[UNK]\n";
    for (char letter = 'a'; letter < 'a' + 19; ++letter)
      words << letter << "\n";
  }

  std::string measure(const std::string& options) const {
    return "measure " + dir + " --layers 0 --text " + (folder / "text") + " " +
           options;
  }

  const std::string dir = folder / "m";
  const ModelConfig config = test::small_config(Architecture::bert);
};

TEST_F(ResumeModel, KnowsAWindowByItsContent) {
  run(measure("--lengths 3 --samples 2"));
  ASSERT_EQ(lines().size(), 2u);
  const json second = lines()[1];
  EXPECT_EQ(second["input"]["from"], "text");
  EXPECT_EQ(second["input"]["name"], folder / "text");
  EXPECT_EQ(second["input"]["offset"], 3);

  // the same window by another way, and from another text
  const Outcome o = run(measure("--lengths 3 --samples 1 --offset 3"));
  EXPECT_NE(o.err.find("1 of 1 answers"), std::string::npos) << o.err;
  ASSERT_EQ(lines().size(), 3u);
  json expected = second;
  expected["sample"] = 0;
  EXPECT_EQ(lines()[2], expected);  // its seconds too: it was not made again
  run("measure " + dir + " --layers 0 --lengths 3 --samples 1 --offset 4 " +
      "--text " + (folder / "copy"));
  ASSERT_EQ(lines().size(), 4u);
  expected["input"]["name"] = folder / "copy";
  expected["input"]["offset"] = 4;
  EXPECT_EQ(lines()[3], expected);
}

TEST_F(ResumeModel, KnowsAFolderByItsContent) {
  const std::string ask = "--lengths 3 --samples 1";
  run(measure(ask));
  const json first = lines()[0];
  const std::string moved = folder / "moved";
  std::filesystem::rename(dir, moved);
  const Outcome o = run("measure " + moved + " --layers 0 --text " +
                        (folder / "text") + " " + ask);
  EXPECT_NE(o.err.find("1 of 1 answers"), std::string::npos) << o.err;
  json expected = first;
  expected["model"] = moved;
  EXPECT_EQ(lines().at(1), expected);

  // the same weights with another configuration are another model
  for (auto change : std::vector<std::function<void(ModelConfig&)>>{
           [](ModelConfig& c) { c.epsilon = 0.1; },
           [](ModelConfig& c) { c.activation = Activation::relu; },
           [](ModelConfig& c) {
             c.heads = c.key_heads = 4;
             c.head_width = 2;
           }}) {
    ModelConfig other = config;
    change(other);
    write_folder(other);
    const std::size_t before = lines().size();
    run(measure(ask));
    ASSERT_EQ(lines().size(), before + 1);
    EXPECT_EQ(lines().back()["model_sha256"], first["model_sha256"]);
    EXPECT_NE(lines().back()["parameters"]["config_sha256"],
              first["parameters"]["config_sha256"]);
  }
}

// ---- records of another time

TEST_F(Resume, ReportAndCompareReadRecordsWithoutAnInput) {
  run("measure --random d=4,heads=2 --lengths 3,4");
  std::string old;
  for (json r : lines()) {
    r.erase("input");
    r.erase("parameters");
    old += r.dump() + "\n";
  }
  std::ofstream(folder / "old.jsonl") << old;
  for (const std::string& command :
       {"report " + (folder / "old.jsonl"),
        "compare " + (folder / "old.jsonl") + " " + out}) {
    const Outcome o =
        test::lipscope(command + " --out " + (folder / "page.html"));
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_GT(contents(folder / "page.html").size(), 1000u);
    std::filesystem::remove(folder / "page.html");
  }
  // they answer nothing: it is not known what they were asked
  std::filesystem::copy_file(folder / "old.jsonl", out,
                             std::filesystem::copy_options::overwrite_existing);
  run("measure --random d=4,heads=2 --lengths 3,4");
  EXPECT_EQ(lines().size(), 4u);
}

}  // namespace resume_test
}  // namespace lipscope
