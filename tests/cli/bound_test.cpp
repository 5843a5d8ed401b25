// lipscope bound, run as a program.

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "lipscope/io/safetensors.h"
#include "lipscope/spectral/dense.h"
#include "tests/cli/program.h"
#include "tests/model/folders.h"

namespace lipscope {
namespace bound_test {

using test::expect_refusal;
using test::json_lines;
using test::Outcome;

std::vector<nlohmann::json> answers(const std::string& options) {
  const Outcome run = test::lipscope("bound --json " + options);
  EXPECT_EQ(run.code, 0) << run.err;
  return json_lines(run.out);
}

// one head of one number: W_Q = 2, W_K = 3, W_V = 5
class BoundLayer : public testing::Test {
 protected:
  std::string layer(double q, double k, double v) {
    const std::string path = folder / "layer.safetensors";
    const Matrix one = Matrix::Ones(1, 1);
    write_safetensors(path, {{"q", q * one}, {"k", k * one}, {"v", v * one}});
    return "--num-heads 1 --weights " + path + " ";
  }

  static nlohmann::json by(const std::vector<nlohmann::json>& records,
                           const std::string& name) {
    for (const auto& r : records)
      if (r["upper_by"] == name) return r;
    ADD_FAILURE() << "no " << name;
    return {};
  }

  const test::Folder folder;
};

TEST_F(BoundLayer, PrintsTheFormulasWorkedByHand) {
  // ‖A‖ = 6, ‖V‖ = 5, R = 1/2: a = 3/2
  const auto records =
      answers(layer(2, 3, 5) + "--length 4 --radius 0.5 --mask none");
  ASSERT_EQ(records.size(), 4u);
  const auto expect = [&](const std::string& name, double exact) {
    const nlohmann::json r = by(records, name);
    EXPECT_NEAR(r["upper"], exact, 1e-9 * exact) << name;
    EXPECT_GE(r["upper"], exact * (1 - 1e-15)) << name;
    EXPECT_NEAR(r["upper_log10"], std::log10(exact), 1e-9) << name;
  };
  const double own = 5 * (1.5 + 2.5 * std::sqrt(4 / (1 + 3 * std::exp(-3.0))));
  expect("column_sums", own);
  expect("column_sums_meanfield", 5 * (1.5 + 2.5 * std::exp(1.5)));
  expect("castin24_ball", 5 * std::sqrt(3 * (2.25 * 17 + 4)));
  expect("castin24_meanfield", 5 * 5.5 * std::exp(3.0));
  EXPECT_EQ(records[0]["upper_by"], "column_sums");  // the best comes first

  const auto token =
      answers(layer(2, 3, 5) + "--length 4 --radius 0.5 --norm token");
  ASSERT_EQ(token.size(), 1u);
  EXPECT_NEAR(token[0]["upper"], 5 * (1 + 1.5 + 1.5), 1e-9);
  EXPECT_EQ(token[0]["norm"], "token");
  const auto causal =
      answers(layer(2, 3, 5) + "--length 4 --radius 0.5 --mask causal");
  by(causal, "column_sums_causal");
  for (const auto& r : causal) EXPECT_EQ(r["mask"], "causal");
}

TEST_F(BoundLayer, RecordsSayWhatTheySpeakOf) {
  const auto records =
      answers(layer(2, 3, 5) + "--lengths 4,8 --radius 0.5 --mask none");
  ASSERT_EQ(records.size(), 8u);
  int best = 0;
  for (const auto& r : records) {
    EXPECT_EQ(r["command"], "bound");
    EXPECT_EQ(r["scope"], "ball");
    EXPECT_EQ(r["radius_max"], 0.5);
    EXPECT_EQ(r["map"], "attn");
    EXPECT_EQ(r["kind"], "dot");
    EXPECT_EQ(r["norm"], "2");
    EXPECT_EQ(r["d"], 1);
    EXPECT_TRUE(r["lower"].is_null());
    EXPECT_EQ(r["parameters"]["bound"], r["upper_by"]);
    EXPECT_FALSE(r["details"]["citation"].get<std::string>().empty());
    best += r["details"]["best"].get<bool>();
    EXPECT_EQ(r["details"].contains("regime"), r["details"]["best"]);
  }
  EXPECT_EQ(best, 2);
  EXPECT_EQ(records[4]["n"], 8);

  const auto l2 = answers(layer(1, 1, 1) + "--kind l2 --norm inf --length 3");
  EXPECT_EQ(l2.at(0)["scope"], "everywhere");
  EXPECT_TRUE(l2.at(0)["radius_max"].is_null());
  EXPECT_NEAR(l2.at(0)["upper"], 2.8522, 1e-4);  // 4p + 1
}

TEST_F(BoundLayer, NamesTheRegime) {
  // a = 4, e^{2a} = 2981: see Regime.FollowsTheColumnSums
  const auto records =
      answers(layer(1, 1, 1) + "--lengths 8,10000,10000000 --radius 2");
  std::vector<std::string> regimes;
  for (const auto& r : records)
    if (r["details"]["best"]) regimes.push_back(r["details"]["regime"]);
  EXPECT_EQ(regimes,
            (std::vector<std::string>{"sqrt-n", "saturated", "mean-field"}));
}

TEST_F(BoundLayer, BeyondDoubleTheLogarithmGoesOn) {
  // a = 900: column_sums_meanfield is 900 + 901 e^900
  const auto records = answers(layer(1, 1, 1) + "--length 4 --radius 30");
  const nlohmann::json r = by(records, "column_sums_meanfield");
  EXPECT_TRUE(r["upper"].is_null());
  EXPECT_NEAR(r["upper_log10"], std::log10(901) + 900 * std::log10(M_E), 1e-9);
}

TEST_F(BoundLayer, EverywhereItShowsThatThereIsNoBound) {
  const auto records = answers(layer(1, 1, 1) + "--length 3");
  ASSERT_EQ(records.size(), 3u);
  for (const auto& r : records) {
    const double t = r["parameters"]["t"];
    // tokens at ±t answer to themselves alone, but for e^{−t²}
    Matrix J = Matrix::Identity(3, 3);
    J.row(2) << 1.0 / 3, 1.0 / 3, 2 * t * t / 3 + 1.0 / 3;
    const double exact = dense_norm(J).value;
    EXPECT_NEAR(r["lower"], exact, 1e-9 * exact) << t;
    EXPECT_GE(r["lower"], 2 * t * t / 3 + 1.0 / 3) << t;
    EXPECT_TRUE(r["upper"].is_null());
    EXPECT_EQ(r["scope"], "input");
    EXPECT_EQ(r["details"]["not_lipschitz"], true);
  }
  EXPECT_EQ(records[2]["parameters"]["t"], 1000.0);
  const Outcome table =
      test::lipscope("bound " + layer(1, 1, 1) + "--length 3");
  EXPECT_NE(table.out.find("not Lipschitz"), std::string::npos);
  // row sums of the same Jacobian
  const auto inf = answers(layer(1, 1, 1) + "--length 3 --norm inf");
  EXPECT_NEAR(inf.at(0)["lower"], 200.0 / 3 + 1, 1e-9);
  // the other kinds that have no bound
  for (const char* kind : {"sigmoid", "l2-untied"}) {
    const auto other =
        answers(layer(1, -1, 1) + "--length 3 --kind " + std::string(kind));
    EXPECT_GT(other.at(2)["lower"], 50 * other.at(1)["lower"].get<double>());
  }
}

TEST_F(BoundLayer, TheTableMarksTheBestAndCites) {
  const Outcome run = test::lipscope("bound " + layer(2, 3, 5) +
                                     "--length 4 --radius 0.5 --quiet");
  ASSERT_EQ(run.code, 0) << run.err;
  for (const char* word : {"column_sums", "best", "castin24_ball", "Castin24",
                           "regime", "norm 2", "theory/column_sums.h"})
    EXPECT_NE(run.out.find(word), std::string::npos) << word;
}

TEST_F(BoundLayer, ResumesAndDoesNotDependOnThreads) {
  const std::string out = folder / "out.jsonl";
  const std::string ask =
      "bound --random d=16,heads=4 --heads each --lengths "
      "4,9 --radius 2 --resume --out " +
      out;
  ASSERT_EQ(test::lipscope(ask + " --threads 1").code, 0);
  const std::string first = test::contents(out);
  ASSERT_EQ(test::lipscope(ask + " --threads 2").code, 0);
  EXPECT_EQ(test::contents(out), first);
  std::filesystem::remove(out);
  ASSERT_EQ(test::lipscope(ask + " --threads 2").code, 0);
  const auto one = json_lines(first), two = json_lines(test::contents(out));
  ASSERT_EQ(one.size(), two.size());
  for (std::size_t i = 0; i < one.size(); ++i)
    EXPECT_EQ(test::without_times(one[i]), test::without_times(two[i]));
}

TEST_F(BoundLayer, RefusesWhatHasNoAnswer) {
  const std::string with = "bound " + layer(2, 3, 5);
  const auto refused = [&](const std::string& options,
                           const std::vector<std::string>& words) {
    expect_refusal(test::lipscope(with + options), 2, words);
  };
  refused("--radius 0", {"--radius 0", "above 0"});
  refused("--radius -1", {"--radius"});
  refused("--radius nan", {"--radius nan"});
  refused("--radius ln", {"--radius ln", "ln_gain"});
  refused("--radius 1 --length 0", {"0 tokens"});
  refused("--radius 1 --kind softmax", {"--kind softmax"});
  refused("--radius 1 --norm inf", {"--norm inf", "dot"});
  refused("--radius 1 --norm 3", {"--norm 3", "token"});
  refused("--norm token", {"--norm token", "--radius"});
  refused("--kind cosine --norm token", {"--norm token", "cosine"});
  refused("--kind l2-untied --radius 1", {"l2-untied"});
  refused("--length 2", {"--length 2", "3 tokens"});
  refused("--radius 1 --map block", {"--map block"});
  expect_refusal(test::lipscope("bound " + layer(0, 3, 5)), 2, {"zero"});
  // what no writer of ours would write
  const test::Tensor one{{1, 1}, Matrix::Ones(1, 1)};
  const test::Tensor bad{{1, 1}, Matrix::Constant(1, 1, NAN)};
  test::write_tensors(folder / "bad", {{"q", bad}, {"k", one}, {"v", one}});
  expect_refusal(test::lipscope("bound --num-heads 1 --radius 1 --weights " +
                                (folder / "bad")),
                 2, {"bad", "\"q\""});
}

class BoundModel : public testing::TestWithParam<Architecture> {
 protected:
  BoundModel() {
    std::filesystem::create_directory(dir);
    test::write_model(dir, config, tensors);
  }

  const test::Folder folder;
  const std::string dir = folder / "m";
  const ModelConfig config = test::small_config(GetParam());
  test::Tensors tensors = test::random_tensors(config, 1);
};

TEST_P(BoundModel, ComposesTheConstantsOfTheParts) {
  const auto attn = answers(dir + " --length 5");
  const auto residual = answers(dir + " --length 5 --map residual");
  const auto block = answers(dir + " --length 5 --map block");
  const auto model = answers(dir + " --length 5 --map model");
  ASSERT_EQ(residual.size(), 2u);
  ASSERT_EQ(block.size(), 2u);
  ASSERT_EQ(model.size(), 1u);
  const auto gain = [&](const std::string& name) {
    return tensors.at(name).values.cwiseAbs().maxCoeff() /
           std::sqrt(config.epsilon);
  };
  double sum = 0.0;
  for (Index l = 0; l < 2; ++l) {
    double best = INFINITY;
    for (const auto& r : attn) {
      EXPECT_EQ(r["scope"], "ball");
      EXPECT_EQ(r["parameters"]["tokens"], "after the norm layer");
      if (r["layer"] == l && r["upper"].is_number())
        best = std::min(best, r["upper"].get<double>());
    }
    const LayerModules m = layer_modules(config, l);
    const double n1 = gain(m.attention_norm->name + ".weight");
    const double exact = config.pre_norm() ? 1 + best * n1 : n1 * (1 + best);
    EXPECT_NEAR(residual[l]["upper"], exact, 1e-9 * exact);
    EXPECT_EQ(residual[l]["scope"], config.pre_norm() ? "everywhere" : "ball");

    const double n2 = gain(m.mlp_norm->name + ".weight");
    const double mlp = std::pow(
        10, block[l]["details"]["log10_of_parts"]["mlp"].get<double>());
    const double whole =
        exact * (config.pre_norm() ? 1 + mlp * n2 : n2 * (1 + mlp));
    EXPECT_NEAR(block[l]["upper"], whole, 1e-9 * whole);
    sum += block[l]["upper_log10"].get<double>();
  }
  if (const auto last = outer_modules(config).final_norm)
    sum += std::log10(gain(last->name + ".weight"));
  EXPECT_NEAR(model[0]["upper_log10"], sum, 1e-9);
}

TEST_P(BoundModel, IsNeverBelowWhatIsMeasured) {
  std::ofstream(folder / "ids") << "3 1 4 1 5 9 2 6 5 3";
  for (const char* map : {"core", "residual", "block", "model"}) {
    const Outcome run = test::lipscope(
        "measure " + dir + " --json --dtype f64 --samples 2 --length 5 --ids " +
        (folder / "ids") + " --certificate all --map " + map);
    ASSERT_EQ(run.code, 0) << run.err;
    const auto above = answers(dir + " --length 5 --map " + std::string(map));
    for (const auto& r : json_lines(run.out)) {
      if (r["command"] != "measure") continue;
      ASSERT_GE(r["details"]["certificates"].size(), 1u) << map;
      for (const auto& [name, value] : r["details"]["certificates"].items())
        EXPECT_LE(r["lower"], value) << map << " " << name;
      for (const auto& b : above) {
        if (b["layer"] != r["layer"]) continue;
        EXPECT_LE(std::log10(r["lower"].get<double>()), b["upper_log10"])
            << map << " " << b["upper_by"];
      }
    }
  }
}

TEST_P(BoundModel, ServesAttentionWithoutTheMlp) {
  std::erase_if(tensors, [](const auto& t) {
    return t.first.find("mlp.") != std::string::npos ||
           t.first.find("intermediate") != std::string::npos;
  });
  test::write_model(dir, config, tensors);
  EXPECT_EQ(test::lipscope("bound " + dir).code, 0);
  EXPECT_EQ(test::lipscope("bound " + dir + " --map residual").code, 0);
  const std::string missing = layer_modules(config, 0).up.name + ".weight";
  expect_refusal(test::lipscope("bound " + dir + " --map block"), 2, {missing});
  expect_refusal(test::lipscope("bound " + dir + " --map model"), 2, {missing});
  expect_refusal(test::lipscope("bound " + dir + " --map block --radius 2"), 2,
                 {"--radius 2", "ln"});
  expect_refusal(test::lipscope("bound " + dir + " --map residual --norm inf"),
                 2, {"--norm inf", "2-norm"});
}

INSTANTIATE_TEST_SUITE_P(Architectures, BoundModel,
                         testing::Values(Architecture::gpt2, Architecture::bert,
                                         Architecture::llama));

}  // namespace bound_test
}  // namespace lipscope
