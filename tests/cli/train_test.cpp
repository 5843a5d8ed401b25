// train, eval and sample as a user runs them.

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/cli/program.h"

namespace lipscope::test {
namespace train_test {

const std::string sizes =
    " --width 8 --heads 2 --context 8 --batch 2 --eval-every 5 --threads 1 "
    "--measure 8 --quiet";
const std::string small = sizes + " --layers 1";

std::string text_file(const Folder& folder) {
  std::ofstream text(folder / "text.txt");
  for (int i = 0; i < 40; ++i) text << "a river runs by the hill. ";
  return folder / "text.txt";
}

TEST(Train, LeavesAFolderThatEvalAndSampleRead) {
  const Folder folder;
  const std::string text = text_file(folder);
  const std::string out = folder / "model";
  const Outcome trained = lipscope("train " + text + " --out " + out +
                                   " --model l2 --steps 10 --json" + small);
  ASSERT_EQ(trained.code, 0) << trained.err;
  const auto lines = json_lines(trained.out);
  EXPECT_EQ(lines, json_lines(contents(out + "/metrics.jsonl")));

  const Outcome judged = lipscope("eval " + out + " --text " + text +
                                  " --split test --json --threads 1");
  ASSERT_EQ(judged.code, 0) << judged.err;
  const auto &tested = lines.back(), &last_tenth = lines[lines.size() - 2];
  EXPECT_EQ(tested["parameters"]["split"], "test");
  EXPECT_EQ(json_lines(judged.out)[0]["nll"], tested["value"]);
  EXPECT_EQ(json_lines(judged.out)[0]["characters"],
            tested["details"]["characters"]);
  // the last tenth is both pieces, one after the other
  EXPECT_EQ(last_tenth["parameters"]["split"], "last tenth");
  EXPECT_EQ(last_tenth["details"]["characters"],
            2 * tested["details"]["characters"].get<int>() + 1);

  const Outcome written =
      lipscope("sample " + out + " --prompt river --length 7 --threads 1");
  ASSERT_EQ(written.code, 0) << written.err;
  EXPECT_EQ(written.out.size(), 13u);
  EXPECT_EQ(written.out.substr(0, 5), "river");
}

TEST(Sample, BeginsWithACharacterThatTheModelKnows) {
  const Folder folder;
  const struct {
    std::string text, begins;
  } cases[] = {{"ab\nab ", "\n"}, {"ab ab", " "}, {"cbacb", "a"}};
  for (const auto& c : cases) {
    std::ofstream file(folder / "t.txt");
    for (int i = 0; i < 200; ++i) file << c.text;
    file.close();
    const std::string out = folder / ("model of " + c.begins);
    const Outcome trained =
        lipscope("train " + (folder / "t.txt") + " --out '" + out +
                 "' --steps 1 --quiet" + small);
    ASSERT_EQ(trained.code, 0) << trained.err;
    const Outcome written =
        lipscope("sample '" + out + "' --length 5 --threads 1");
    ASSERT_EQ(written.code, 0) << written.err;
    EXPECT_EQ(written.out.size(), 7u);
    EXPECT_EQ(written.out.substr(0, 1), c.begins);
    // what is asked for must be known
    expect_refusal(lipscope("sample '" + out + "' --prompt x"), 2,
                   {"--prompt", "U+0078"});
    expect_refusal(lipscope("sample '" + out + "' --prompt ''"), 2,
                   {"--prompt", "empty"});
  }
}

// Three figures; two evaluations of two layers, each with two losses, three
// gradient norms and two constants; the end.
TEST(Train, WritesRecordsThatSayWhatTheyAre) {
  const Folder folder;
  const std::string text = text_file(folder);
  for (const std::string model : {"dot", "l2", "l2-untied", "contractive-l2"}) {
    const Outcome trained =
        lipscope("train " + text + " --out " + (folder / model) + " --model " +
                 model + " --steps 10 --json --layers 2" + sizes);
    ASSERT_EQ(trained.code, 0) << trained.err;
    const auto lines = json_lines(trained.out);
    ASSERT_EQ(lines.size(), 3u + 2u * (2 + 3 + 2) + 2u);
    std::map<std::string, int> counted;
    double squares = 0.0;
    for (const auto& r : lines) {
      EXPECT_EQ(r["schema"], 2);
      EXPECT_EQ(r["command"], "train");
      EXPECT_EQ(r["kind"], model);
      EXPECT_EQ(r["mask"], "causal");
      const auto& asked = r["parameters"];
      if (!asked.contains("x")) continue;
      EXPECT_EQ(asked["x_name"], "step");
      EXPECT_TRUE(asked["x"] == 5 || asked["x"] == 10) << r;
      if (r.contains("value")) {
        EXPECT_TRUE(r["lower"].is_null() && r["upper"].is_null()) << r;
        EXPECT_GT(r["value"].get<double>(), 0.0);
        ++counted[r["value_of"]];
        const bool of_layer = r["layer"].is_number();
        if (r["norm"] == "2" && asked["x"] == 10)
          squares += (of_layer ? -1 : 1) * std::pow(double(r["value"]), 2);
        continue;
      }
      ++counted["constant"];
      EXPECT_EQ(r["map"], "attn");
      EXPECT_EQ(r["norm"], "2");
      EXPECT_EQ(r["n"], 8);
      EXPECT_EQ(r["d"], 8);
      EXPECT_EQ(r["scope"], "input");
      EXPECT_GT(r["radius_max"].get<double>(), 0.0);
      EXPECT_GT(r["lower"].get<double>(), 0.0);
      EXPECT_EQ(r["lower_by"], "dense-gram");
      if (model == "l2-untied") {
        EXPECT_TRUE(r["upper"].is_null()) << r;
        continue;
      }
      EXPECT_LE(r["lower"].get<double>(), r["upper"].get<double>());
      EXPECT_TRUE(r["upper_by"].is_string());
      EXPECT_EQ(r["details"]["upper_scope"].get<std::string>().rfind("ball", 0),
                model == "dot" ? 0 : std::string::npos);
    }
    EXPECT_EQ(counted["constant"], 4);
    EXPECT_EQ(counted["loss in nats a character"], 6);
    EXPECT_EQ(counted["norm of the gradient before clipping"], 6);
    // what is not a layer's is that of embeddings and head
    EXPECT_GT(squares, 0.0);

    const Outcome page =
        lipscope("report " + (folder / model) + "/metrics.jsonl --out " +
                 (folder / "page.html"));
    EXPECT_EQ(page.code, 0) << page.err;
  }
}

TEST(Train, RefusesBadInputByName) {
  const Folder folder;
  const std::string text = text_file(folder);
  const auto refused = [&](const std::string& arguments,
                           const std::string& why) {
    const Outcome o = lipscope(arguments + small);
    EXPECT_EQ(o.code, 2) << arguments << ": " << o.err;
    EXPECT_NE(o.err.find(why), std::string::npos) << arguments << ": " << o.err;
  };
  const std::string out = " --out " + (folder / "model");
  std::ofstream(folder / "empty.txt").flush();
  std::ofstream(folder / "one.txt") << "a";
  refused("train " + (folder / "none.txt") + out, "none.txt");
  refused("train " + (folder / "empty.txt") + out, "0 different characters");
  refused("train " + (folder / "one.txt") + out, "1 different characters");
  refused("train " + text + " --out /proc/none/model", "/proc/none/model");
  refused("train " + text + out + " --model lsd", "lsd");
}

TEST(Train, RefusesWhatDoesNotFitTogether) {
  const Folder folder;
  const std::string text = text_file(folder);
  const auto train = [&](const std::string& more) {
    return lipscope("train " + text + " --out " + (folder / "model") +
                    " --batch 2 --eval-every 5 --threads 1 --quiet "
                    "--layers 1 " +
                    more);
  };
  Outcome o = train("--width 9 --heads 2 --context 8 --steps 5");
  EXPECT_EQ(o.code, 2);
  EXPECT_NE(o.err.find("width 9 does not divide into 2 heads"),
            std::string::npos)
      << o.err;
  o = train("--width 8 --heads 2 --context 100 --steps 5");
  EXPECT_EQ(o.code, 2);
  EXPECT_NE(o.err.find("a context of 100 needs 101"), std::string::npos)
      << o.err;

  ASSERT_EQ(train("--width 8 --heads 2 --context 8 --steps 5").code, 0);
  o = train("--width 8 --heads 2 --context 8 --steps 10");
  EXPECT_EQ(o.code, 2);
  EXPECT_NE(o.err.find("--resume"), std::string::npos) << o.err;
  o = train("--width 8 --heads 2 --context 8 --steps 10 --resume --lr 0.5");
  EXPECT_EQ(o.code, 2);
  EXPECT_NE(o.err.find("trained with lr 0.001"), std::string::npos) << o.err;

  std::ofstream(folder / "model/checkpoint-5.safetensors") << "nonsense";
  o = train("--width 8 --heads 2 --context 8 --steps 10 --resume");
  EXPECT_EQ(o.code, 2);
  EXPECT_NE(o.err.find("damaged"), std::string::npos) << o.err;

  std::ofstream(folder / "model/model.safetensors") << "nonsense";
  o = lipscope("sample " + (folder / "model") + " --prompt river");
  EXPECT_EQ(o.code, 2);
  EXPECT_NE(o.err.find("model.safetensors"), std::string::npos) << o.err;
  o = lipscope("eval " + (folder / "none") + " --text " + text);
  EXPECT_EQ(o.code, 2);
}

TEST(Train, KeepsAPromisedConstantAndSaysWhatItCosts) {
  const Folder folder;
  const std::string text = text_file(folder);
  const auto train = [&](const std::string& name, const std::string& more) {
    return lipscope("train " + text + " --out " + (folder / name) +
                    " --model l2 --norm none --max-lipschitz 4 --lr 0.01" +
                    more + small);
  };
  const Outcome whole = train("whole", " --steps 10 --json --cost");
  ASSERT_EQ(whole.code, 0) << whole.err;
  // proved at both evaluations of the limited run; what it costs comes last
  const auto lines = json_lines(whole.out);
  int proved = 0;
  for (const auto& line : lines) {
    if (line.value("upper_by", nlohmann::json()) != "stack_constant") continue;
    ++proved;
    EXPECT_LE(line["upper"].get<double>(), 4.0);
    EXPECT_GT(line["upper"].get<double>(), 3.9);
    EXPECT_EQ(line["map"], "model");
    EXPECT_EQ(line["scope"], "everywhere");
    EXPECT_EQ(line["parameters"]["limit"], 4.0);
  }
  EXPECT_EQ(proved, 2);
  const auto& cost = lines.back();
  EXPECT_EQ(cost["cost_in_valid_nll"].get<double>(),
            cost["best_valid_nll"].get<double>() -
                cost["unconstrained_best_valid_nll"].get<double>());
  EXPECT_EQ(nlohmann::json::parse(contents(folder / "whole/cost.json")),
            nlohmann::json(cost));
  EXPECT_NE(contents(folder / "whole/unconstrained/model.safetensors"),
            contents(folder / "whole/model.safetensors"));

  // interrupted after 5 steps; without its limit it would be another run
  ASSERT_EQ(train("parts", " --steps 5").code, 0);
  const Outcome rest = train("parts", " --steps 10 --resume");
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_NE(rest.out.find("certified constant at most 3.9"), std::string::npos)
      << rest.out;
  EXPECT_EQ(contents(folder / "parts/checkpoint-10.safetensors"),
            contents(folder / "whole/checkpoint-10.safetensors"));
  const Outcome other =
      lipscope("train " + text + " --out " + (folder / "parts") +
               " --model l2 --norm none --lr 0.01 --resume --steps 20" + small);
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("max-lipschitz"), std::string::npos) << other.err;
}

TEST(Train, MakesModelsWhosePromisedConstantCertifyAndBoundSay) {
  const Folder folder;
  const std::string text = text_file(folder), model = folder / "promised";
  const Outcome trained =
      lipscope("train " + text + " --out " + model +
               " --model position --norm none --positions none --residual none "
               "--activation max_min --optimizer muon --singular-values soft "
               "--longest-token 4 --max-lipschitz 2 --steps 2" +
               small);
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_NE(
      trained.out.find("(promised 2): input of layer 0 -> logits, 2-norm"),
      std::string::npos)
      << trained.out;
  const Outcome certified =
      lipscope("certify " + model + " --text " + text + " --positions 2");
  ASSERT_EQ(certified.code, 0) << certified.err;
  EXPECT_NE(
      certified.out.find("constant to the logits, everywhere, from above: "
                         "1.99"),
      std::string::npos)
      << certified.out;
  EXPECT_EQ(lipscope("bound " + model + " --map model --length 8").code, 0);
}

TEST(Train, PromisesNothingItCannotKeep) {
  const Folder folder;
  const std::string train =
      "train " + text_file(folder) + " --out " + (folder / "model") + small;
  const auto refused = [&](const std::string& options, const char* why) {
    const Outcome o = lipscope(train + options);
    EXPECT_EQ(o.code, 2) << options;
    EXPECT_NE(o.err.find(why), std::string::npos) << o.err;
  };
  refused(" --max-lipschitz 10 --model l2", "norm none");
  refused(" --max-lipschitz 10 --norm none --model dot",
          "give the longest token");
  refused(" --max-lipschitz 10 --norm none --model position", "take a rule");
  refused(" --max-lipschitz 1 --norm none --model l2", "above 1");
  refused(" --cost --norm none --model l2", "--max-lipschitz");
  refused(" --spectral-cap 0", "--spectral-cap");
  refused(" --spectral-cap 2 --spectral-norm", "--spectral-norm");
  EXPECT_EQ(lipscope(train + " --spectral-norm --steps 3").code, 0);
}

}  // namespace train_test
}  // namespace lipscope::test
