// The table of docs/bounds.md, cell by cell: which bounds the program gives for
// which question, and which questions it refuses.

#include <gtest/gtest.h>

#include <algorithm>

#include "lipscope/core/rng.h"
#include "lipscope/io/safetensors.h"
#include "tests/cli/program.h"
#include "tests/model/folders.h"

namespace lipscope {
namespace bound_table_test {

using Names = std::vector<std::string>;

constexpr const char* refused = "refused";
constexpr const char* grows = "grows";

/// What is expected of one cell: names of bounds in alphabetical order, or one
/// of the two words above. The second is with a query bias.
struct Cell {
  std::string kind, radius, norm, mask;
  Names plain, biased;
};

std::vector<Cell> table() {
  std::vector<Cell> cells;
  const auto add = [&](const std::string& kind, const Names& radii,
                       const std::string& norm, const Names& masks,
                       const Names& plain, const Names& biased = {}) {
    for (const std::string& radius : radii)
      for (const std::string& mask : masks)
        cells.push_back(
            {kind, radius, norm, mask, plain, biased.empty() ? plain : biased});
  };
  const Names ball{"1.5", "ln"}, all{"everywhere"},
      anywhere{"1.5", "ln", "everywhere"}, none{"none"}, causal{"causal"},
      both{"none", "causal"};
  add("dot", ball, "2", none,
      {"castin24_ball", "castin24_meanfield", "column_sums",
       "column_sums_meanfield"},
      {"column_sums", "column_sums_meanfield"});
  add("dot", ball, "2", causal,
      {"castin24_ball", "column_sums_causal", "hardy_meanfield"},
      {"column_sums_causal", "hardy_meanfield"});
  add("dot", ball, "inf", both, {refused});
  add("dot", ball, "token", both, {"row_sums"});
  for (const char* kind : {"dot", "sigmoid", "l2-untied"}) {
    add(kind, all, "2", both, {grows});
    add(kind, all, "inf", both, {grows});
    add(kind, all, "token", both, {refused});
  }
  add("l2", anywhere, "2", both,
      {"kim21_two", "l2_diagonal_apart", "l2_kernel"});
  add("l2", anywhere, "inf", both, {"kim21_inf", "l2_coordinates"});
  add("l2", anywhere, "token", both, {"l2_row_sums"});
  add("cosine", anywhere, "2", both, {"cosine_column_sums", "qi23_cosine"});
  add("cosine", anywhere, "inf", both, {refused});
  add("cosine", anywhere, "token", both, {refused});
  add("sigmoid", ball, "2", both, {"ramapuram24_ball"});
  add("sigmoid", ball, "inf", both, {refused});
  add("sigmoid", ball, "token", both, {refused});
  for (const char* norm : {"2", "inf", "token"})
    add("l2-untied", ball, norm, both, {refused});
  return cells;
}

class BoundTable : public testing::Test {
 protected:
  BoundTable() {
    for (const bool biased : {false, true}) {
      const Rng rng(3);
      const auto matrix = [&](std::uint64_t stream) {
        return test::Tensor{{4, 4}, gaussian(4, 4, rng.split(stream))};
      };
      test::Tensors tensors{{"q", matrix(0)},
                            {"k", matrix(1)},
                            {"v", matrix(2)},
                            {"o", matrix(3)},
                            {"ln_gain", {{4}, Matrix::Ones(4, 1)}}};
      if (biased) tensors["q_bias"] = {{4}, gaussian(4, 1, rng.split(4))};
      test::write_tensors(file(biased), tensors);
    }
  }

  std::string file(bool biased) const {
    return folder / (biased ? "biased.safetensors" : "plain.safetensors");
  }

  const test::Folder folder;
};

// how the program answers one cell, in the words of the table
Names answered(const std::string& options) {
  const test::Outcome run =
      test::lipscope("bound --quiet --json --length 5 " + options);
  if (run.code == 2) {
    EXPECT_NE(run.err.find("no bound"), std::string::npos) << run.err;
    return {refused};
  }
  EXPECT_EQ(run.code, 0) << options << run.err;
  Names names;
  for (const nlohmann::json& r : test::json_lines(run.out)) {
    const std::string name =
        r["upper_by"].is_null() ? grows : r["upper_by"].get<std::string>();
    if (std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

TEST_F(BoundTable, IsWhatTheProgramGives) {
  int asked = 0;
  for (const Cell& c : table())
    for (const bool biased : {false, true})
      for (const std::string rest : {"", " --heads each --map core"}) {
        // a column of the table does not change with the heads: a third of the
        // cells shows it
        if (!rest.empty() && ++asked % 3 != 0) continue;
        const std::string options = "--num-heads 2 --weights " + file(biased) +
                                    " --kind " + c.kind + " --radius " +
                                    c.radius + " --norm " + c.norm +
                                    " --mask " + c.mask + rest;
        EXPECT_EQ(answered(options), biased ? c.biased : c.plain) << options;
      }
}

TEST(BoundTableOfLlama, HasTheBoundsForRotaryPositions) {
  const test::Folder folder;
  const ModelConfig config = test::small_config(Architecture::llama);
  const std::string dir = folder / "llama";
  std::filesystem::create_directory(dir);
  test::write_model(dir, config, test::random_tensors(config, 5));
  const auto ask = [&](const std::string& rest) {
    return answered(dir + " --layers 0 " + rest);
  };
  EXPECT_EQ(ask("--norm 2 --mask causal"), Names{"column_sums_causal"});
  EXPECT_EQ(ask("--norm 2 --mask none"), Names{"column_sums"});
  EXPECT_EQ(ask("--norm token"), Names{"row_sums"});
  EXPECT_EQ(ask("--norm inf"), Names{refused});
}

// (4p + 1)/√k ‖W_Q‖²‖W_V‖ for one head of one number, n = 3: p = W₀(2/e)
TEST(BoundOfTiedL2, IsWorkedByHandInTheTokenNorm) {
  const test::Folder folder;
  const Matrix one = Matrix::Ones(1, 1);
  write_safetensors(folder / "w", {{"q", 2 * one}, {"v", 5 * one}});
  const test::Outcome run = test::lipscope(
      "bound --json --kind l2 --norm token --length 3 --num-heads 1 "
      "--weights " +
      (folder / "w"));
  ASSERT_EQ(run.code, 0) << run.err;
  const auto records = test::json_lines(run.out);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["scope"], "everywhere");
  EXPECT_EQ(records[0]["norm"], "token");
  const double p = 0.4630555133655488;  // p e^{p+1} = 2
  EXPECT_NEAR(p * std::exp(p + 1), 2.0, 1e-9);
  EXPECT_NEAR(records[0]["upper"].get<double>(), (4 * p + 1) * 4 * 5, 1e-7);
}

// what measure finds in the token norm has the same bounds above it, over the
// ball that holds the input: ‖V‖(1 + a + a), a = 6 R², at tokens ½ and −¼
TEST(MeasureInTheTokenNorm, HasTheBoundOverTheBallAboveIt) {
  const test::Folder folder;
  const Matrix one = Matrix::Ones(1, 1);
  Matrix x(2, 1);
  x << 0.5, -0.25;
  write_safetensors(folder / "w",
                    {{"q", 2 * one}, {"k", 3 * one}, {"v", 5 * one}, {"x", x}});
  const auto measured = [&](const std::string& options) {
    const test::Outcome run = test::lipscope(
        "measure --json --quiet --norm token --num-heads 1 --weights " +
        (folder / "w") + options);
    EXPECT_EQ(run.code, 0) << run.err;
    return test::json_lines(run.out).at(0);
  };
  const nlohmann::json dot = measured("");
  EXPECT_EQ(dot["upper_by"], "row_sums");
  EXPECT_NEAR(dot["upper"].get<double>(), 5 * (1 + 1.5 + 1.5), 1e-9);
  EXPECT_LE(dot["lower"], dot["upper"]);
  EXPECT_TRUE(measured(" --certificate none")["upper"].is_null());
  EXPECT_TRUE(measured(" --kind sigmoid")["upper"].is_null());
  write_safetensors(folder / "w", {{"q", 2 * one}, {"v", 5 * one}, {"x", x}});
  const nlohmann::json l2 = measured(" --kind l2");
  EXPECT_EQ(l2["upper_by"], "l2_row_sums");
  const double p = 0.27846454276107;  // p e^{p+1} = 1
  EXPECT_NEAR(l2["upper"].get<double>(), (4 * p + 1) * 4 * 5, 1e-6);
  EXPECT_LE(l2["lower"], l2["upper"]);
}

// what search climbs to stays below it, and comes near it in one dimension
TEST(BoundOfTiedL2, StandsAboveWhatIsSearchedInTheTokenNorm) {
  double closest = 0.0;
  for (const std::string layer :
       {"d=1,heads=1,scale=1", "d=3,heads=2,width=2,scale=1",
        "d=4,heads=1,scale=2"}) {
    const test::Outcome run = test::lipscope(
        "search --json --kind l2 --norm token --restarts 4 --max-evaluations "
        "200 --threads 1 --lengths 3,9 --seed 4 --random " +
        layer);
    ASSERT_EQ(run.code, 0) << run.err;
    for (const nlohmann::json& r : test::json_lines(run.out)) {
      EXPECT_EQ(r["upper_by"], "l2_row_sums");
      ASSERT_TRUE(r["upper"].is_number());
      const double ratio = r["lower"].get<double>() / r["upper"].get<double>();
      EXPECT_LE(ratio, 1.0) << layer;
      closest = std::max(closest, ratio);
    }
  }
  EXPECT_GT(closest, 0.75);
}

}  // namespace bound_table_test
}  // namespace lipscope
