// lipscope meanfield, run as a program.

#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/io/npy.h"
#include "lipscope/transport/local_constant.h"
#include "tests/cli/program.h"
#include "tests/model/folders.h"
#include "tests/transport/measures.h"

namespace lipscope {
namespace meanfield_test {

using test::expect_refusal;
using test::Folder;
using test::json_lines;
using test::Outcome;

class Meanfield : public testing::Test {
 protected:
  // one head on numbers, s_ij = a x_i x_j, with tensors of one axis beside
  std::string write(double a, const Matrix& x,
                    const std::map<std::string, Vector>& vectors = {},
                    const std::string& name = "w") {
    const Matrix one = Matrix::Ones(1, 1);
    test::Tensors tensors{{"q", {{1, 1}, a * one}},
                          {"k", {{1, 1}, one}},
                          {"v", {{1, 1}, one}},
                          {"x", {{x.rows(), x.cols()}, x}}};
    for (const auto& [tensor, v] : vectors)
      tensors[tensor] = {{v.size()}, Matrix(v)};
    const std::string path = folder / (name + ".safetensors");
    test::write_tensors(path, tensors, "F64");
    return path;
  }

  // the records by what changed
  static std::map<std::string, nlohmann::json> answers(
      const std::string& arguments) {
    const Outcome run = test::lipscope("meanfield --json " + arguments);
    EXPECT_EQ(run.code, 0) << run.err;
    std::map<std::string, nlohmann::json> by;
    for (const nlohmann::json& r : json_lines(run.out)) {
      EXPECT_EQ(r["command"], "meanfield");
      const nlohmann::json& asked = r["parameters"];
      by[asked["change"].get<std::string>() +
         (asked.contains("optimise") ? " worst" : "")] = r;
      if (!r["upper"].is_null()) {
        EXPECT_LE(r["lower"], r["upper"]);
      }
    }
    return by;
  }

  Folder folder;
};

TEST_F(Meanfield, PrintsTheTheorysTable) {
  struct Row {
    double w, moving, splitting;
  };
  for (const Row& row :
       {Row{0.25, 0.591034059, 0.75}, Row{0.1, 0.333348539, 0.9},
        Row{0.01, 0.100503782, 0.99}, Row{0.001, 0.0316385999, 0.999}}) {
    const std::string file = write(-1, Matrix{{0.0}, {1 / std::sqrt(row.w)}},
                                   {{"mass", Vector{{1 - row.w, row.w}}}});
    auto r = answers("--weights " + file + " --num-heads 1 --duplicate 2");
    EXPECT_NEAR(r["move"]["lower"], row.moving, 5e-5);
    EXPECT_NEAR(r["split"]["lower"], row.splitting, 5e-5);
    EXPECT_NEAR(r["duplicate"]["lower"], row.splitting, 5e-5);
    EXPECT_NEAR(r["moved"]["lower"], row.moving, 1e-3 * row.moving);
    EXPECT_NEAR(r["parted"]["lower"], row.splitting, 1e-3 * row.splitting);
    EXPECT_EQ(r["split"]["details"]["wins"], "split");
    EXPECT_EQ(r["split"]["details"]["token"], 0);
    EXPECT_LE(r["moved"]["details"]["relative_gap"], 1e-9);
    for (const char* change : {"move", "split", "moved", "parted"})
      EXPECT_EQ(r[change]["norm"], "w2");
    EXPECT_EQ(r["move"]["scope"], "input");
    EXPECT_EQ(r["moved"]["scope"], "ball");
    EXPECT_EQ(r["moved"]["upper_by"], "column_sums_meanfield");
  }
}

TEST_F(Meanfield, ShowsBothMeanFieldBounds) {
  // a = 4 at R = 1: 4 + 5e⁴ here, 13e⁸ in the paper
  const std::string file = write(-4, Matrix{{-1.0}, {1.0}});
  auto r = answers("--weights " + file +
                   " --num-heads 1 --optimise-masses --step 0 --restarts 2");
  const nlohmann::json& worst = r["move worst"];
  EXPECT_NEAR(worst["lower"], 165.8455, 2e-3);
  EXPECT_NEAR(worst["upper"], 4 + 5 * std::exp(4.0), 1e-6);
  const auto& bounds = worst["details"]["bounds_log10"];
  EXPECT_NEAR(bounds["column_sums_meanfield"],
              std::log10(4 + 5 * std::exp(4.0)), 1e-9);
  EXPECT_NEAR(bounds["castin24_meanfield"], std::log10(13 * std::exp(8.0)),
              1e-9);
  EXPECT_NEAR(worst["details"]["mass"][0].get<double>() +
                  worst["details"]["mass"][1].get<double>(),
              1.0, 1e-15);
  EXPECT_EQ(r.count("moved"), 0u);
}

TEST_F(Meanfield, MasksByPosition) {
  const Matrix x{{0.0}, {3.0}, {-1.0}};
  const Vector mass{{0.5, 0.25, 0.25}}, position{{0.0, 0.0, 1.0}};
  const std::string file =
      write(-1, x, {{"mass", mass}, {"position", position}});
  auto r = answers("--weights " + file + " --num-heads 1 --duplicate 3");
  // P_0 = (2/3, 1/3) on 0 and 3: Cov = 2
  EXPECT_NEAR(r["split"]["lower"], 2.0, 1e-12);
  EXPECT_NEAR(r["duplicate"]["lower"], 2.0, 1e-8);
  EXPECT_EQ(r["split"]["norm"], "d2");
  EXPECT_EQ(r["split"]["mask"], "causal");
  EXPECT_EQ(r["parted"]["upper_by"], "hardy_meanfield");
  // without the mask positions do not matter
  auto open = answers("--weights " + file + " --num-heads 1 --mask none");
  const LocalConstant expected =
      local_constant(test::scalar_layer(-1), {}, make_measure(x, mass));
  EXPECT_NEAR(open["move"]["lower"], expected.moving.lower, 1e-12);
  EXPECT_EQ(open["move"]["norm"], "w2");
}

TEST_F(Meanfield, SavesTheWorstChange) {
  const Matrix x{{0.0}, {10.0}};
  const std::string file = write(-1, x, {{"mass", Vector{{0.99, 0.01}}}});
  answers("--weights " + file + " --num-heads 1 --save-direction " +
          (folder / "v.npy") + " --save-input " + (folder / "x.npy"));
  EXPECT_EQ(read_npy(folder / "x.npy"), x);
  const Matrix v = read_npy(folder / "v.npy");
  EXPECT_NEAR(std::abs(v(0, 0)), 1.0, 1e-12);  // the halves of token 0 part
  EXPECT_EQ(v(1, 0), 0.0);
}

TEST_F(Meanfield, TakesSequencesAsEqualMasses) {
  const Matrix x{{9.531}, {0.796}};
  auto r =
      answers("--weights " + write(-0.345, x) + " --num-heads 1 --duplicate 2");
  EXPECT_NEAR(r["move"]["lower"], 1.3534, 5e-5);
  EXPECT_NEAR(r["split"]["lower"], 2.0093, 5e-5);
  EXPECT_NEAR(r["duplicate"]["lower"], 2.0093, 5e-5);
}

TEST_F(Meanfield, ResumesWithoutDoingItAgain) {
  const std::string run =
      "meanfield --random d=4,heads=2,scale=1 --length 3 --samples 2 --out " +
      (folder / "r.jsonl");
  ASSERT_EQ(test::lipscope(run).code, 0);
  const std::string first = test::contents(folder / "r.jsonl");
  EXPECT_EQ(json_lines(first).size(), 8u);
  ASSERT_EQ(test::lipscope(run + " --resume").code, 0);
  EXPECT_EQ(test::contents(folder / "r.jsonl"), first);
}

TEST_F(Meanfield, RefusesWhatIsNoMeasure) {
  const Matrix x{{0.0}, {3.0}, {1.0}};
  const auto with = [&](const std::map<std::string, Vector>& vectors) {
    return test::lipscope("meanfield --num-heads 1 --weights " +
                          write(-1, x, vectors));
  };
  expect_refusal(with({{"mass", Vector{{0.5, -0.25, 0.75}}}}), 2,
                 {"mass", "entry 1 is -0.25"});
  expect_refusal(with({{"mass", Vector{{0.5, 0.25, 0.35}}}}), 2,
                 {"mass", "sum to 1.1"});
  expect_refusal(with({{"mass", Vector{{0.5, 0.5}}}}), 2,
                 {"mass", "2 masses for 3 tokens"});
  expect_refusal(with({{"position", Vector{{1.0, 0.0, 2.0}}}}), 2,
                 {"position", "entry 1 is 0 after 1"});
  expect_refusal(with({{"position", Vector{{1.0}}}}), 2,
                 {"position", "1 positions for 3 tokens"});
  const std::string good =
      "meanfield --num-heads 1 --weights " + write(-1, x, {}, "good");
  expect_refusal(test::lipscope(good + " --optimise-masses --move-atoms -1"), 2,
                 {"--move-atoms"});
  expect_refusal(test::lipscope(good + " --optimise-masses --move-atoms 1"), 2,
                 {"token 1 has norm 3", "radius 1"});
  expect_refusal(test::lipscope(good + " --move-atoms 1"), 2,
                 {"--optimise-masses"});
  expect_refusal(test::lipscope(good + " --optimise-masses --mask causal"), 2,
                 {"--optimise-masses", "mask"});
  expect_refusal(test::lipscope(good + " --kind sigmoid"), 2, {"sigmoid"});
  expect_refusal(test::lipscope(good + " --length 0"), 2, {"0 tokens"});
  expect_refusal(test::lipscope(good + " --length 4 --radius -2"), 2,
                 {"above 0"});
  expect_refusal(test::lipscope("meanfield --random gpt2 --map block"), 2,
                 {"--map block"});
}

}  // namespace meanfield_test
}  // namespace lipscope
