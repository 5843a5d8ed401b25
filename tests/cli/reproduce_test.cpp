#include <gtest/gtest.h>

#include <cmath>

#include "tests/cli/reproduced.h"

namespace lipscope {
namespace reproduce_test {

using nlohmann::json;
using test::expect_refusal;
using test::Folder;
using test::Outcome;
using test::reproduced;

// the record of a curve at a place; of a figure, where its name is given
json at(const std::vector<json>& records, const std::string& series, double x,
        const std::string& figure = "") {
  for (const json& r : records) {
    const json& p = r["parameters"];
    if (p.value("series", "") == series &&
        std::abs(p["x"].get<double>() - x) <= 1e-9 * std::abs(x) &&
        (figure.empty() || p["experiment"] == figure))
      return r;
  }
  ADD_FAILURE() << "no " << series << " at " << x;
  return {{"lower", NAN}, {"upper", NAN}, {"details", json::object()}};
}

TEST(ReproduceCommand, ListsTheExperiments) {
  for (const std::string arguments : {"reproduce", "reproduce list"}) {
    const Outcome o = test::lipscope(arguments);
    EXPECT_EQ(o.code, 0) << o.err;
    for (const std::string name :
         {"kim-tightness", "kim-inversion", "dot-product-unbounded",
          "kim-charlm", "kim-stability", "castin-adversarial",
          "castin-meanfield", "large-radius", "layer-norm", "mass-splitting",
          "newhouse-shakespeare"})
      EXPECT_NE(o.out.find(name), std::string::npos) << name;
  }
}

TEST(ReproduceCommand, RefusesWhatItDoesNotKnow) {
  expect_refusal(test::lipscope("reproduce nothing"), 2,
                 {"nothing", "kim-tightness"});
  expect_refusal(test::lipscope("reproduce kim-tightness --model somewhere"), 2,
                 {"somewhere", "reads no model"});
  expect_refusal(test::lipscope("reproduce layer-norm --model /no/such/dir"), 2,
                 {"/no/such/dir"});
  expect_refusal(test::lipscope("reproduce kim-charlm --text /no/such/text"), 2,
                 {"/no/such/text"});
  expect_refusal(test::lipscope("reproduce layer-norm --steps 3"), 2,
                 {"--steps 3", "nothing learns"});
  const Folder folder;
  std::ofstream(folder / "empty.txt").flush();
  expect_refusal(
      test::lipscope("reproduce kim-charlm --text " + (folder / "empty.txt")),
      2, {"empty.txt", "is empty"});
}

// J_11 = 2t²/3 + 1/3: 67 at t = 10, 6667 at t = 100
TEST(ReproduceCommand, DotProductGrowsLikeTheSquareWhereL2Stays) {
  const auto records = reproduced("dot-product-unbounded");
  EXPECT_EQ(records.front()["parameters"],
            json({{"experiment", "dot-product-unbounded"}}));
  EXPECT_TRUE(records.front()["details"]["log_x"].get<bool>());
  for (const auto& [t, value] : {std::pair(10.0, 67.0), {100.0, 6667.0}})
    for (const std::string norm : {"2", "inf"}) {
      const json r = at(records, "dot-product, " + norm + "-norm", t);
      EXPECT_NEAR(r["details"]["J_11"].get<double>(), value, 1e-9 * value);
      EXPECT_NEAR(r["details"]["formula"].get<double>(), value, 1e-9 * value);
      EXPECT_GE(r["lower"].get<double>(), value * (1 - 1e-12));
      // tokens far away feel what token 0 does: at most √3 and 1 times more
      EXPECT_LE(r["lower"].get<double>(), 2.0 * value);
    }
  for (const json& r : records) {
    if (r["kind"] != "l2") continue;
    EXPECT_EQ(r["scope"], "everywhere");
    if (r["norm"] == "inf") {
      EXPECT_NEAR(r["upper"].get<double>(), 2.8522, 1e-4);
    }
    EXPECT_LE(r["lower"].get<double>(), 3.0);
  }
}

// ½(1+γR²)e^{γR²} from below, optimised 3.07, 13.0, 48.1, 165.8; a + (1+a)e^a
// and (1+3a)e^{2a} from above
TEST(ReproduceCommand, MeasuresGrowLikeTheProjectsBound) {
  const auto records = reproduced("castin-meanfield");
  for (const auto& [size, best] :
       {std::pair(1.0, 3.07), {2.0, 13.0}, {3.0, 48.1}, {4.0, 165.8}}) {
    const json own = at(records, "best masses, column_sums_meanfield", size);
    const json castin = at(records, "best masses, castin24_meanfield", size);
    EXPECT_NEAR(own["lower"].get<double>(), best, 0.002 * best);
    EXPECT_EQ(own["lower"], castin["lower"]);
    EXPECT_NEAR(own["upper"].get<double>(), size + (1 + size) * std::exp(size),
                1e-9 * own["upper"].get<double>());
    EXPECT_NEAR(castin["upper"].get<double>(),
                (1 + 3 * size) * std::exp(2 * size),
                1e-9 * castin["upper"].get<double>());
    const json paper = at(records, "masses of the paper", size);
    EXPECT_GE(paper["lower"].get<double>() * (1 + 1e-9),
              0.5 * (1 + size) * std::exp(size));
    EXPECT_LE(paper["lower"].get<double>(),
              own["lower"].get<double>() * (1 + 1e-9));
  }
}

TEST(ReproduceCommand, SplittingMassTurnsTheTableUpsideDown) {
  const auto records = reproduced("mass-splitting");
  struct Expected {
    double w, whole, cut;
  };
  for (const auto& [w, whole, cut] : {Expected{0.25, 0.591, 0.750},
                                      {0.1, 0.333, 0.900},
                                      {0.01, 0.1005, 0.990},
                                      {0.001, 0.0316, 0.999}}) {
    EXPECT_NEAR(at(records, "whole", w)["lower"].get<double>(), whole, 6e-4);
    EXPECT_NEAR(at(records, "cut", w)["lower"].get<double>(), cut, 1e-6);
    for (const auto& [series, value] :
         {std::pair<std::string, double>("whole", whole), {"cut", cut}}) {
      const json r = at(records, series + ", W2 ratio", w);
      EXPECT_NEAR(r["lower"].get<double>(), value, 1e-3) << series << " " << w;
      EXPECT_LE(r["details"]["relative_gap"].get<double>(), 1e-9);
      EXPECT_EQ(r["status"], "converged");
    }
  }
  const std::string copies = "mass-splitting, copies";
  EXPECT_NEAR(
      at(records, "sequence with copies", 1, copies)["lower"].get<double>(),
      1.3534, 1e-4);
  for (const double pieces : {2.0, 3.0, 4.0})
    EXPECT_NEAR(at(records, "sequence with copies", pieces, copies)["lower"]
                    .get<double>(),
                2.0093, 1e-4);
  EXPECT_NEAR(at(records, "cut", 1, copies)["lower"].get<double>(), 2.0093,
              1e-4);
}

TEST(ReproduceCommand, ALargeInputEndsAtACountOfTokens) {
  const auto records = reproduced("large-radius");
  for (const std::string input : {"0", "1", "2"}) {
    const json limit = at(records, "limit of input " + input, 1e4);
    EXPECT_GT(limit["lower"].get<double>(), 0.0);
    EXPECT_NEAR(at(records, "input " + input, 1e4)["lower"].get<double>(),
                limit["lower"].get<double>(),
                1e-6 * limit["lower"].get<double>());
    // and it is not there already
    EXPECT_GT(
        std::abs(at(records, "input " + input, 0.1)["lower"].get<double>() -
                 limit["lower"].get<double>()),
        1e-2);
  }
}

TEST(ReproduceCommand, ANormLayerKeepsTheConstantBounded) {
  const auto records = reproduced("layer-norm");
  const auto lower = [&](const std::string& series, double t) {
    return at(records, series, t)["lower"].get<double>();
  };
  // a hundred times the size: 10⁴ times the constant, without a norm alone
  EXPECT_NEAR(
      lower("without norm, family", 1000) / lower("without norm, family", 10),
      1e4, 100);
  const json with = at(records, "with norm, over all inputs", 1000);
  EXPECT_EQ(with["scope"], "everywhere");
  EXPECT_EQ(with["map"], "attn(norm)");
  EXPECT_EQ(with["upper"],
            at(records, "with norm, over all inputs", 10)["upper"]);
  EXPECT_GT(lower("without norm, family", 1000), with["upper"].get<double>());
  for (const json& r : records)
    if (r["parameters"].contains("series")) {
      EXPECT_TRUE(r["upper"].is_number()) << r;
    }
}

// A run that was cut goes on with what is missing; tables have a line for each
// x, figures that were left and opened again are one.
TEST(ReproduceCommand, LearningGoesOnWhereItWasCut) {
  const Folder folder;
  {
    std::ofstream text(folder / "text.txt");
    for (int i = 0; i < 80; ++i) text << "a river runs by the hill. ";
  }
  const std::string out = folder / "rows.jsonl";
  const std::string run = "reproduce kim-charlm --steps 2 --threads 1 --text " +
                          (folder / "text.txt") + " --resume --out " + out;
  const Outcome whole = test::lipscope(run);
  ASSERT_EQ(whole.code, 0) << whole.err;
  const std::string written = test::contents(out);
  const auto lines = test::json_lines(written);
  // six figures; of six models two evaluations, loss and share, of three
  // n-grams loss and share, at four depths
  ASSERT_EQ(lines.size(), 6u + 4u * (6u * (2u + 2u) + 3u * 2u));
  for (const json& r : lines) {
    EXPECT_TRUE(r["lower"].is_null());
    EXPECT_NE(r["command_line"].get<std::string>().find(run),
              std::string::npos);
    EXPECT_NE(r["machine"].get<std::string>().find(" cores"),
              std::string::npos);
    if (!r["parameters"].contains("series")) continue;
    const bool share = r["parameters"]["experiment"] == "kim-charlm, predicted";
    EXPECT_EQ(r["value_of"], share
                                 ? "share of characters that were the likeliest"
                                 : "loss in nats a character");
    EXPECT_GE(r["value"].get<double>(), 0.0);
    EXPECT_TRUE(r["parameters"]["text_sha256"].is_string());
  }
  const json last = at(lines, "lstm", 4, "kim-charlm");
  EXPECT_EQ(last["kind"], "lstm");
  EXPECT_EQ(last["scope"], "the test text");

  std::ofstream(out) << written.substr(0, written.size() / 2);
  const Outcome again = test::lipscope(run);
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.out, whole.out);
  auto resumed = test::json_lines(test::contents(out));
  ASSERT_EQ(resumed.size(), lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i)
    EXPECT_EQ(test::without_times(resumed[i]), test::without_times(lines[i]));
  // layers over six models, four lines
  EXPECT_NE(whole.out.find("contractive-l2"), std::string::npos) << whole.out;
  const json divided =
      at(lines, "contractive-l2 by coordinate", 4, "kim-charlm");
  EXPECT_EQ(divided["parameters"]["quiet_gain"], 8.0);
  EXPECT_NE(divided["value"],
            at(lines, "contractive-l2", 4, "kim-charlm")["value"]);
  // a mean of three seeds with its range
  EXPECT_GT(last["details"]["most"], last["details"]["least"]);
  EXPECT_NE(whole.out.find(" to "), std::string::npos) << whole.out;
  EXPECT_EQ(whole.out.find("Models of characters against their depth"),
            whole.out.rfind("Models of characters against their depth"));

  // another text is another question
  std::ofstream(folder / "text.txt", std::ios::app) << "a hill.";
  ASSERT_EQ(test::lipscope(run).code, 0);
  EXPECT_GT(test::json_lines(test::contents(out)).size(), lines.size());
}

// 340 kinds of sentences, so that the last tenth holds Newhouse25's windows
std::string long_text(const Folder& folder) {
  std::ofstream text(folder / "long.txt");
  for (int i = 0; i < 680; ++i)
    text << "the river " << i % 17 << " runs by hill " << i % 20 << ". ";
  return folder / "long.txt";
}

TEST(NewhouseShakespeare, PlacesModelsByProofAndByFormula) {
  const Folder folder;
  const std::string out = folder / "rows.jsonl";
  const std::string run =
      "reproduce newhouse-shakespeare --steps 2 --threads 1 --text " +
      long_text(folder) + " --resume --out " + out;
  const Outcome whole = test::lipscope(run);
  ASSERT_EQ(whole.code, 0) << whole.err;
  const auto lines = test::json_lines(test::contents(out));
  const std::string figure = "newhouse-shakespeare",
                    windows = "newhouse-shakespeare, windows",
                    theirs = "Newhouse25's architecture, ";
  for (const double promised : {2.0, 10.0}) {
    const json proved = at(lines, theirs + "proved here", promised, figure);
    const json said = at(lines, theirs + "by its formula", promised, figure);
    EXPECT_EQ(proved["value"], said["value"]);
    EXPECT_EQ(proved["details"]["drawn_at"], proved["details"]["proved_rms"]);
    EXPECT_EQ(said["details"]["drawn_at"],
              proved["details"]["newhouse25_formula"]);
    EXPECT_LT(said["details"]["drawn_at"], proved["details"]["drawn_at"]);
    for (const std::string series :
         {"position heads", "position heads and one that compares",
          "Newhouse25's architecture, proved here"}) {
      const json r = at(lines, series, promised, figure);
      const double constant = r["details"]["proved_rms"];
      EXPECT_LE(constant, promised) << series;
      EXPECT_GT(constant, 0.99 * promised) << series;
      EXPECT_EQ(r["value"], r["details"]["last_tenth_nll"]);
      EXPECT_EQ(at(lines, series, promised, windows)["value"],
                r["details"]["newhouse25_nll"]);
      EXPECT_EQ(at(lines, series, promised, windows + ", predicted")["value"],
                r["details"]["newhouse25_accuracy"]);
    }
  }
  EXPECT_EQ(
      at(lines, "Newhouse25, soft cap (published)", 1.64, windows)["value"],
      1.35);
  EXPECT_GT(at(lines, "2-grams", 0.5, figure)["value"],
            at(lines, "5-grams", 0.5, figure)["value"]);
  // nothing is done twice
  const std::string before = test::contents(out);
  const Outcome again = test::lipscope(run);
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.out, whole.out);
  EXPECT_EQ(test::contents(out), before);
}

// c R(R + s)/k + 1 − c over 3 with R = 16, k = 64: 1.64 of 11 tokens
TEST(NewhouseShakespeare, IdentitiesReactMoreThanTheirFormulaSays) {
  const Folder folder;
  const std::string text = long_text(folder), model = folder / "model";
  ASSERT_EQ(test::lipscope("train " + text + " --out " + model +
                           " --model position --layers 1 --width 8 --heads 2 "
                           "--context 8 --steps 2 --eval-every 1 --batch 2 "
                           "--norm none --positions none --measure 0 "
                           "--singular-values soft --longest-token 4 "
                           "--max-lipschitz 2 --promise token --threads 1 "
                           "--quiet")
                .code,
            0);
  const Outcome o = test::lipscope(
      "reproduce newhouse-shakespeare --json --threads 1 --text " + text +
      " --runs " + model);
  ASSERT_EQ(o.code, 0) << o.err;
  const auto lines = test::json_lines(o.out);
  const auto identity = [&](double tokens) {
    return at(lines, "central difference", tokens,
              "newhouse-shakespeare, identities");
  };
  for (const double tokens : {3.0, 11.0, 255.0}) {
    const json r = identity(tokens);
    EXPECT_NEAR(r["details"]["newhouse25_formula"].get<double>(), 1.0, 1e-9);
    EXPECT_NEAR(r["lower"].get<double>(), r["details"]["formula"].get<double>(),
                2e-2);
    EXPECT_LE(r["lower"], r["upper"]);
  }
  EXPECT_NEAR(identity(11)["lower"].get<double>(), 1.64, 0.01);
  EXPECT_NEAR(identity(255)["lower"].get<double>(), 2.33, 0.01);
  // the folder is shown where its proof puts it, and nothing is trained
  const json run = at(lines, "position heads", 0, "newhouse-shakespeare");
  EXPECT_EQ(run["details"]["drawn_at"], run["details"]["proved_rms"]);
  EXPECT_LE(run["details"]["proved_token_norm"], 2.0);
  EXPECT_EQ(run["parameters"]["steps"], 2.0);
  const auto metrics =
      test::json_lines(test::contents(model + "/metrics.jsonl"));
  EXPECT_EQ(run["value"], metrics[metrics.size() - 3]["value"]);
  for (const json& r : lines)
    EXPECT_NE(r["parameters"].value("series", ""),
              "Newhouse25's architecture, proved here");
}

TEST(NewhouseShakespeare, RefusesRunsOfAnotherText) {
  const Folder folder;
  const std::string text = long_text(folder);
  std::ofstream(folder / "other.txt") << test::contents(text) << "Q";
  const std::string model = folder / "model";
  ASSERT_EQ(test::lipscope("train " + text + " --out " + model +
                           " --layers 1 --width 8 --heads 2 --context 8 "
                           "--steps 1 --batch 2 --measure 0 --quiet")
                .code,
            0);
  expect_refusal(test::lipscope("reproduce newhouse-shakespeare --text " +
                                (folder / "other.txt") + " --runs " + model),
                 2, {"other characters"});
  expect_refusal(test::lipscope("reproduce kim-charlm --runs " + model), 2,
                 {"--runs", "kim-charlm"});
  expect_refusal(test::lipscope("reproduce newhouse-shakespeare --text " +
                                text + " --runs " + (folder / "none")),
                 2, {"none"});
}

TEST(ReproduceCommand, ResumesAndPrintsTheSameTable) {
  const Folder folder;
  const std::string run =
      "reproduce castin-meanfield --threads 1 --resume "
      "--out " +
      (folder / "rows.jsonl");
  const Outcome first = test::lipscope(run);
  ASSERT_EQ(first.code, 0) << first.err;
  const std::string written = test::contents(folder / "rows.jsonl");
  const Outcome again = test::lipscope(run);
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(test::contents(folder / "rows.jsonl"), written);
  EXPECT_EQ(again.out, first.out);
  EXPECT_NE(first.out.find("column_sums_meanfield"), std::string::npos);
}

}  // namespace reproduce_test
}  // namespace lipscope
