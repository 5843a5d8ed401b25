// lipscope measure on model folders, as a user runs it.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "lipscope/attention/dense.h"
#include "lipscope/io/npy.h"
#include "lipscope/model/layer.h"
#include "lipscope/model/pass.h"
#include "lipscope/spectral/dense.h"
#include "tests/cli/program.h"
#include "tests/model/folders.h"

namespace lipscope {
namespace model_test {

using test::expect_refusal;
using test::json_lines;
using test::Outcome;

// a BERT of two layers whose vocabulary is twenty letters
class MeasureModel : public testing::Test {
 protected:
  MeasureModel() {
    std::filesystem::create_directory(dir);
    test::write_model(dir, config, test::random_tensors(config, 1));
    std::string words = "[UNK]\n";
    for (char c = 'a'; c < 'a' + 19; ++c) words += std::string(1, c) + "\n";
    write("m/vocab.txt", words);
    // ids 1, 2, 3, …: every letter is a word
    std::string text;
    for (int i = 0; i < 60; ++i) text += std::string(1, 'a' + i % 19) + " ";
    write("text", text);
  }

  std::string write(const std::string& name, const std::string& content) {
    std::ofstream(folder / name, std::ios::binary) << content;
    return folder / name;
  }

  std::vector<nlohmann::json> measured(const std::string& options) {
    const Outcome o = test::lipscope("measure " + dir + " --json --text " +
                                     (folder / "text") + " " + options);
    EXPECT_EQ(o.code, 0) << o.err;
    std::vector<nlohmann::json> records;
    for (const nlohmann::json& r : json_lines(o.out))
      if (r["command"] == "measure") records.push_back(r);
    return records;
  }

  const test::Folder folder;
  const std::string dir = folder / "m";
  const ModelConfig config = test::small_config(Architecture::bert);
};

// Windows of the text, and every map of every layer, against Jacobians that are
// formed from the model itself.
TEST_F(MeasureModel, MeasuresTheMapsOfEveryLayerOverWindowsOfTheText) {
  const Model model = load_model(dir);
  for (const std::string map : {"core", "attn", "residual", "block", "model"}) {
    const auto records =
        measured("--lengths 3,4 --samples 2 --dtype f64 --map " + map);
    ASSERT_EQ(records.size(), map == "model" ? 4u : 8u) << map;
    for (const nlohmann::json& r : records) {
      const Index n = r["n"], sample = r["sample"];
      const Index offset = n == 3 ? sample * 3 : 6 + sample * 4;
      std::vector<Index> ids;
      for (Index i = 0; i < n; ++i) ids.push_back(1 + (offset + i) % 19);
      const HiddenStates<double> states =
          ForwardPass<double>(model, PassOptions{})(ids);
      MapPtr<double> f;
      Matrix x;
      if (map == "model") {
        f = model_map<double>(model, {});
        x = states.layer[0];
        EXPECT_TRUE(r["layer"].is_null());
      } else {
        const Index l = r["layer"];
        const MapName name = map == "core"       ? MapName::core
                             : map == "attn"     ? MapName::attn
                             : map == "residual" ? MapName::residual
                                                 : MapName::block;
        f = layer_map<double>(load_layer(model, l, name), name, {});
        x = name == MapName::core || name == MapName::attn ? states.attention[l]
                                                           : states.layer[l];
      }
      const double norm = dense_norm(materialize(*f->linearize(x))).value;
      EXPECT_NEAR(r["lower"].get<double>(), norm, 1e-10 * norm)
          << map << " " << r.dump();
      EXPECT_EQ(r["mask"], "none");
      EXPECT_EQ(r["dtype"], "f64");
      EXPECT_EQ(r["map"], map);
    }
  }
}

TEST_F(MeasureModel, MeasuresEachHeadAndOtherKindsOnTheSameWeights) {
  const auto heads =
      measured("--lengths 4 --samples 1 --layers 1 --heads each");
  ASSERT_EQ(heads.size(), 2u);
  EXPECT_EQ(heads[0]["head"], 0);
  EXPECT_EQ(heads[1]["head"], 1);
  EXPECT_NE(heads[0]["lower"], heads[1]["lower"]);
  const auto l2 =
      measured("--lengths 4 --samples 1 --layers 1 --kind l2").at(0);
  const auto causal =
      measured("--lengths 4 --samples 1 --layers 1 --mask causal").at(0);
  const auto dot = measured("--lengths 4 --samples 1 --layers 1").at(0);
  EXPECT_EQ(l2["kind"], "l2");
  EXPECT_NE(l2["lower"], dot["lower"]);
  EXPECT_NE(causal["lower"], dot["lower"]);
  // at the same input
  EXPECT_EQ(l2["radius_rms"], dot["radius_rms"]);
}

TEST_F(MeasureModel, TakesIdsAndGivenInputsAndRandomModels) {
  const std::string ids = write("ids", "1 2 3\n4");
  const Outcome by_id =
      test::lipscope("measure " + dir + " --json --lengths 4 --samples 1 " +
                     "--layers 0 --ids " + ids);
  ASSERT_EQ(by_id.code, 0) << by_id.err;
  EXPECT_EQ(json_lines(by_id.out).at(0)["lower"],
            measured("--lengths 4 --samples 1 --layers 0").at(0)["lower"]);

  const Matrix x = gaussian(3, config.width, Rng(4));
  write_npy(folder / "x.npy", x);
  const Outcome given = test::lipscope("measure " + dir +
                                       " --json --layers 1 --heads 1 --input " +
                                       (folder / "x.npy"));
  ASSERT_EQ(given.code, 0) << given.err;
  const LayerWeights layer = load_layer(load_model(dir), 1, MapName::attn);
  AttentionOptions head;
  head.heads = {1};
  const double norm =
      dense_norm(dense_jacobian(layer.attention, head, x)).value;
  EXPECT_NEAR(json_lines(given.out).at(0)["lower"].get<double>(), norm,
              1e-10 * norm);
}

TEST_F(MeasureModel, FitsTheGrowthAndResumes) {
  const std::string out = folder / "out.jsonl";
  const std::string sweep =
      "--lengths 2,4,6,8 --samples 2 --out " + out + " --resume";
  measured(sweep);
  const std::string whole = test::contents(out);
  const auto records = json_lines(whole);
  ASSERT_EQ(records.size(), 16u + 2u);
  EXPECT_EQ(records.back()["command"], "growth");
  EXPECT_EQ(records.back()["layer"], 1);
  EXPECT_EQ(records.back()["points"], 8);
  EXPECT_EQ(records.back()["confidence"], 0.95);
  // everything is there: nothing is added
  measured(sweep);
  EXPECT_EQ(test::contents(out), whole);

  // half of a group is missing, and the fits: only what is missing is added
  std::string cut;
  std::istringstream lines(whole);
  std::string line;
  for (int i = 0; i < 5 && std::getline(lines, line); ++i) cut += line + "\n";
  write("out.jsonl", cut);
  measured(sweep);
  const auto again = json_lines(test::contents(out));
  ASSERT_EQ(again.size(), records.size());
  for (std::size_t i = 0; i < again.size(); ++i) {
    EXPECT_EQ(test::without_times(again[i]), test::without_times(records[i]))
        << i;
  }
}

TEST_F(MeasureModel, SaysWhatAFolderMisses) {
  test::Tensors some = test::random_tensors(config, 1);
  std::erase_if(some, [](const auto& t) {
    return t.first.find("intermediate") != std::string::npos ||
           t.first.find("word_embeddings") != std::string::npos;
  });
  test::write_model(dir, config, some);
  expect_refusal(
      test::lipscope("measure " + dir + " --text " + (folder / "text")), 2,
      {"word_embeddings", "intermediate.dense"});
  // what is there still serves
  write_npy(folder / "x.npy", gaussian(3, config.width, Rng(4)));
  EXPECT_EQ(test::lipscope("measure " + dir + " --heads each --input " +
                           (folder / "x.npy"))
                .code,
            0);
  EXPECT_EQ(test::lipscope("measure " + dir + " --length 4 --radius ln").code,
            0);
}

TEST_F(MeasureModel, RefusesWhatDoesNotFit) {
  const std::string with_text =
      "measure " + dir + " --text " + (folder / "text");
  expect_refusal(test::lipscope("measure " + dir), 2,
                 {dir, "--text", "--input"});
  expect_refusal(test::lipscope(with_text + " --lengths 9 --samples 10"), 2,
                 {"60 tokens", "90 are needed"});
  expect_refusal(test::lipscope(with_text + " --lengths 12 --samples 1"), 2,
                 {"10"});
  expect_refusal(test::lipscope(with_text + " --layers 2"), 2,
                 {"--layers 2", "0 to 1"});
  expect_refusal(test::lipscope(with_text + " --map block --heads 0"), 2,
                 {"--heads 0", "block"});
  expect_refusal(test::lipscope("measure " + (folder / "nothing")), 2,
                 {"nothing"});
  expect_refusal(test::lipscope(with_text + " --weights w.safetensors"), 2,
                 {"--weights"});
  write("bad", "ab\xff");
  expect_refusal(test::lipscope("measure " + dir + " --text " +
                                (folder / "bad") + " --lengths 2"),
                 2, {"bad", "2"});
  const std::string ids = write("ids", "1 2 20");
  expect_refusal(test::lipscope("measure " + dir + " --ids " + ids +
                                " --lengths 3 --samples 1"),
                 2, {"20", "vocabulary"});
  write("m/vocab.txt", test::contents(folder / "m/vocab.txt") + "extra\n");
  expect_refusal(test::lipscope(with_text + " --lengths 2 --samples 1"), 2,
                 {"21", "20", "belong together"});
}

// Shares from the top singular pair of the Jacobian, formed from the model.
TEST_F(MeasureModel, SaysOnWhichTokensTheWorstChangeSits) {
  const Model model = load_model(dir);
  const auto records =
      measured("--lengths 4 --samples 2 --layers 1 --dtype f64 --tokens");
  ASSERT_EQ(records.size(), 2u);
  for (const nlohmann::json& r : records) {
    const Index first = 4 * r["sample"].get<Index>();
    std::vector<Index> ids;
    std::vector<std::string> words;
    for (Index i = first; i < first + 4; ++i) {
      ids.push_back(1 + i);
      words.push_back(std::string(i > 0 ? " " : "") +
                      static_cast<char>('a' + i));
    }
    const Matrix x =
        ForwardPass<double>(model, PassOptions{})(ids).attention[1];
    const Matrix j =
        materialize(*layer_map<double>(load_layer(model, 1), MapName::attn, {})
                         ->linearize(x));
    const Vector v = dense_norm(j).direction, u = j * v;
    EXPECT_EQ(r["details"]["tokens"], words);
    for (const auto& [name, side] :
         {std::pair("input_share", v), {"output_share", u}})
      for (Index i = 0; i < 4; ++i) {
        const double share =
            side.segment(8 * i, 8).squaredNorm() / side.squaredNorm();
        EXPECT_NEAR(r["details"][name][i].get<double>(), share, 5.1e-3 * share)
            << name << " of " << i;
      }
    // what arrives at i from j, by the blocks of the Jacobian
    for (Index i = 0; i < 4; ++i)
      for (Index k = 0; k < 4; ++k) {
        const Vector arrives =
            j.block(8 * i, 8 * k, 8, 8) * v.segment(8 * k, 8);
        EXPECT_NEAR(r["details"]["flow"][i][k].get<double>(),
                    arrives.dot(u.segment(8 * i, 8)) / u.squaredNorm(), 5.1e-5)
            << "from " << k << " to " << i;
      }
  }
}

TEST_F(MeasureModel, SaysFromWhichTokenToWhichUpTo32Tokens) {
  for (const Index n : {32, 33}) {
    const Outcome o = test::lipscope(
        "measure --random d=4,heads=1 --json --tokens --length " +
        std::to_string(n));
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(json_lines(o.out)[0]["details"].contains("flow"), n == 32);
  }
}

TEST_F(MeasureModel, NamesTokensByTheirIdsWhereThereIsNoText) {
  const Outcome o = test::lipscope(
      "measure " + dir + " --json --tokens --lengths 3 --samples 1 --ids " +
      write("ids", "4 5 6 7"));
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(json_lines(o.out)[0]["details"]["tokens"],
            (std::vector<std::string>{" 4", " 5", " 6"}));
  // tokens that are mere numbers have shares and no names
  const Outcome made =
      test::lipscope("measure --random d=4,heads=1 --length 3 --json --tokens");
  ASSERT_EQ(made.code, 0) << made.err;
  const nlohmann::json details = json_lines(made.out)[0]["details"];
  EXPECT_FALSE(details.contains("tokens"));
  EXPECT_EQ(details["input_share"].size(), 3u);
}

TEST_F(MeasureModel, RefusesSharesOfAnotherNorm) {
  expect_refusal(test::lipscope("measure --random d=4,heads=1 --length 3 "
                                "--tokens --norm inf"),
                 2, {"--tokens", "norm inf"});
}

}  // namespace model_test
}  // namespace lipscope
