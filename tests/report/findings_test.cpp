#include "lipscope/report/findings.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lipscope {
namespace findings_test {

using nlohmann::ordered_json;

ordered_json with(ordered_json record, const ordered_json& more) {
  record.update(more);
  return record;
}

// one measurement, as `measure` writes it, with nothing from above
ordered_json measured(int layer, ordered_json head, int n, double lower) {
  return {{"command", "measure"}, {"layer", layer},   {"head", head},
          {"map", "attn"},        {"n", n},           {"sample", 0},
          {"lower", lower},       {"upper", nullptr}, {"upper_whp", nullptr},
          {"status", "converged"}};
}

TEST(MeasuredFinding, NamesTheLayerAndHeadThatReactMost) {
  EXPECT_EQ(
      measured_finding({measured(0, 1, 8, 2.5),
                        with(measured(3, 7, 64, 14.25),
                             {{"upper", 15.5}, {"upper_by", "split_paths"}}),
                        measured(3, 6, 128, 14.2)}),
      "Answer: layer 3, head 7 reacts most, at n = 64: a small change "
      "comes out 14.25 times as large, and at most 15.5 times "
      "(split_paths).");
}

TEST(MeasuredFinding, SaysTheSmallerClaimFromAbove) {
  const ordered_json both =
      with(measured(1, "all", 8, 2.0), {{"upper", 4.0},
                                        {"upper_by", "split_paths"},
                                        {"upper_whp", 3.0},
                                        {"delta", 1e-10}});
  EXPECT_EQ(measured_finding({both}),
            "Answer: layer 1 reacts, at n = 8: a small change comes out 2 "
            "times as large, and at most 3 times but for a chance of 1e-10.");
  EXPECT_NE(measured_finding({with(both, {{"upper_whp", 5.0}})})
                .find("at most 4 times (split_paths)."),
            std::string::npos);
}

TEST(MeasuredFinding, SaysWhatIsMissingWhatIsTiedAndWhatDidNotConverge) {
  EXPECT_EQ(measured_finding({}), "");
  EXPECT_EQ(measured_finding({{{"command", "measure"}, {"lower", nullptr}}}),
            "");
  EXPECT_NE(measured_finding({measured(0, "all", 8, 1.0)})
                .find("; nothing is proved from above."),
            std::string::npos);
  const ordered_json lone = with(measured(0, "all", 8, 1.0),
                                 {{"layer", nullptr}, {"upper", INFINITY}});
  EXPECT_NE(measured_finding({lone}).find("the layer reacts, at n = 8"),
            std::string::npos);
  EXPECT_NE(measured_finding({lone}).find("nothing is proved"),
            std::string::npos);
  const Findings tied = {measured(0, 0, 8, 2.0), measured(1, 1, 8, 2.0),
                         measured(1, 2, 8, 1.0)};
  EXPECT_NE(measured_finding(tied).find("layer 0, head 0 reacts most"),
            std::string::npos);
  EXPECT_NE(measured_finding(tied).find("; one other part just as strongly."),
            std::string::npos)
      << measured_finding(tied);
  EXPECT_NE(measured_finding(
                {measured(0, 0, 8, 2.0),
                 with(measured(0, 0, 8, 1.0), {{"status", "not-converged"}})})
                .find(". 1 of 2 measurements did not converge."),
            std::string::npos);
  // only the logarithm fits
  EXPECT_NE(measured_finding(
                {with(measured(0, "all", 8, 1.0), {{"upper_log10", 350.25}})})
                .find("at most 10^350.3 times"),
            std::string::npos);
}

ordered_json bound(const char* name, double value, bool best, int n = 128) {
  return {{"command", "bound"},
          {"layer", nullptr},
          {"head", "all"},
          {"n", n},
          {"radius_max", 4.0},
          {"scope", "ball"},
          {"lower", nullptr},
          {"upper", value},
          {"upper_log10", std::log10(value)},
          {"upper_by", name},
          {"details", {{"best", best}}}};
}

TEST(BoundsFinding, NamesTheBestBoundAndItsScope) {
  EXPECT_EQ(
      bounds_finding({bound("column_sums", 12.5, true),
                      bound("castin24_ball", 30.0, false)}),
      "Answer: column_sums is the best of 2 bounds: at most 12.5 times as "
      "large, for any 128 tokens within 4.");
  EXPECT_EQ(bounds_finding(
                {with(bound("kim21", 2.0, true), {{"scope", "everywhere"}})}),
            "Answer: kim21 is the best of 1 bound: at most 2 times as large, "
            "for any 128 tokens, anywhere.");
  const ordered_json beyond = with(bound("column_sums", 1.0, true),
                                   {{"upper", nullptr}, {"upper_log10", 400}});
  EXPECT_NE(bounds_finding({beyond}).find("at most 10^400.0 times"),
            std::string::npos);
  EXPECT_EQ(bounds_finding({}), "");
}

TEST(BoundsFinding, GivesTheRangeOfSeveral) {
  EXPECT_EQ(
      bounds_finding({bound("a", 3.0, true, 8), bound("b", 4.0, false, 8),
                      bound("a", 5.0, true, 64), bound("b", 9.0, true, 512)}),
      "Answer: the best bounds go from 3 (the layer, n = 8) to 9 (the "
      "layer, n = 512); best is a (2 of 3), b (1 of 3).");
}

TEST(BoundsFinding, SaysThatThereIsNone) {
  EXPECT_EQ(bounds_finding({{{"lower", 60.0}, {"radius_max", 10.0}},
                            {{"lower", 6e5}, {"radius_max", 1000.0}}}),
            "Answer: no bound holds over all inputs: the layer reacts 600000 "
            "times at tokens of norm 1000, and ever more strongly farther "
            "out.");
}

ordered_json searched(double lower, ordered_json upper, const char* of) {
  return {{"layer", 5},
          {"head", 3},
          {"n", 64},
          {"lower", lower},
          {"upper", upper},
          {"upper_by", "column_sums"},
          {"status", "converged"},
          {"parameters", {{"of", of}}},
          {"details", {{"start", "random 3"}}}};
}

TEST(SearchedFinding, SaysTheLargestAndHowFarBelowItsBound) {
  EXPECT_EQ(searched_finding({searched(12.0, 48.0, "best"),
                              searched(99.0, 100.0, "start random 1"),
                              searched(3.0, 48.0, "best")}),
            "Answer: the largest constant found is 12 (layer 5, head 3, n = "
            "64, from start 'random 3'); at most 48 (column_sums), 4 times "
            "that.");
  EXPECT_NE(searched_finding({searched(12.0, nullptr, "best")})
                .find("no bound is proved there."),
            std::string::npos);
  EXPECT_NE(searched_finding({with(searched(12.0, 48.0, "best"),
                                   {{"status", "not-converged"}})})
                .find("1 of 1 search ended early: more may be found"),
            std::string::npos);
  EXPECT_EQ(searched_finding({}), "");
}

ordered_json changed(const char* change, double lower, int sample = 0) {
  return {{"layer", nullptr}, {"head", "all"},
          {"n", 8},           {"sample", sample},
          {"lower", lower},   {"parameters", {{"change", change}}}};
}

TEST(MeanfieldFinding, SaysWhetherCuttingMatters) {
  EXPECT_EQ(meanfield_finding({changed("move", 1.0), changed("split", 1.0)}),
            "Answer: cutting tokens does not matter at this input: moving them "
            "whole reacts most, 1 times (the layer, n = 8).");
  EXPECT_EQ(
      meanfield_finding({changed("move", 1.0, 0), changed("split", 1.5, 0),
                         changed("move", 2.0, 1), changed("split", 2.0, 1),
                         changed("moved", 9.0, 1)}),
      "Answer: cutting tokens matters at 1 of 2 inputs, most at the "
      "layer, n = 8: 1.5 times with cutting, 1 times without (1.5 times "
      "as much).");
  EXPECT_EQ(meanfield_finding({changed("move", 1.0)}), "");
}

TEST(InvertedFinding, SaysWhatCameBackAndWhatIsProved) {
  const ordered_json back = {
      {"lower", 1e-12}, {"upper", 2e-10}, {"status", "converged"}};
  EXPECT_EQ(inverted_finding({back}),
            "Answer: recovered, 1 input: the error is 1e-12, and is proved to "
            "be at most 2e-10.");
  EXPECT_EQ(inverted_finding({with(back, {{"lower", nullptr}})}),
            "Answer: recovered, 1 input: the error is proved to be at most "
            "2e-10.");
  EXPECT_EQ(
      inverted_finding(
          {back,
           {{"lower", 17.5}, {"upper", nullptr}, {"status", "not-converged"}}}),
      "Answer: 1 of 2 inputs recovered: the largest error is "
      "17.5; it is proved for 1 of them.");
  EXPECT_EQ(inverted_finding({}), "");
}

TEST(RecoveredFinding, CountsCharacters) {
  const ordered_json r = {{"n", 256},
                          {"upper", 1e-9},
                          {"details", {{"recovered", 256}, {"proved", 250}}}};
  EXPECT_EQ(recovered_finding({r}),
            "Answer: 256 of 256 characters recovered, 250 of them proved; the "
            "error is proved to be at most 1e-09.");
  EXPECT_EQ(recovered_finding({{{"n", 8}, {"details", {{"proved", 0}}}}}),
            "Answer: 8 characters read, 0 of them proved; no bound on the "
            "error is proved.");
}

TEST(CertifiedFinding, GivesTheShareAndTheMedian) {
  const auto position = [](ordered_json lower, ordered_json upper) {
    ordered_json r = {{"lower", lower}, {"upper", upper}};
    r["details"] = ordered_json::object();
    return r;
  };
  EXPECT_EQ(certified_finding({position(0.01, 1.0), position(0.1, 10.0),
                               position(nullptr, nullptr)}),
            "Answer: a radius is proved at 66.67 % of 3 positions; the median "
            "is 0.01, and attacks succeed at a median of 10.");
  // the mean of the two in the middle
  EXPECT_NE(certified_finding({position(0.01, 1.0), position(1.0, 1.0)})
                .find("the median is 0.505,"),
            std::string::npos);
  EXPECT_NE(certified_finding({position(nullptr, nullptr)})
                .find("0 % of 1 position; the median is 0, and attacks succeed "
                      "at a median of no distance known"),
            std::string::npos);
}

TEST(TrainedFinding, SaysWhetherThePromiseWasKept) {
  const ordered_json plain = {
      {"best_step", 400}, {"best_valid_nll", 1.5}, {"test_nll", 1.6}};
  EXPECT_EQ(trained_finding(plain),
            "Answer: 1.6000 nats a character (2.3083 bits) on the test text, "
            "1.5000 on the validation text (step 400).");
  EXPECT_NE(trained_finding(with(plain, {{"limit", 4.0}, {"certified", 3.9}}))
                .find("; promise kept: the constant is at most 3.9, promised "
                      "4."),
            std::string::npos);
  EXPECT_NE(trained_finding(with(plain, {{"limit", 4.0}, {"certified", 4.1}}))
                .find("promise BROKEN"),
            std::string::npos);
}

TEST(ComparedFinding, CountsWhatAgreesAndNamesTheLargestRatio) {
  const Findings a = {measured(0, 0, 8, 2.0), measured(1, 0, 8, 4.0),
                      measured(2, 0, 8, 1.0)};
  EXPECT_EQ(compared_finding(a, a),
            "Answer: the two files agree in all of 3 questions in common.");
  EXPECT_EQ(
      compared_finding(a, {measured(0, 0, 8, 2.0000000001),
                           measured(1, 0, 8, 1.0), measured(2, 0, 8, 3.0)}),
      "Answer: of 3 questions in common 1 agree to six digits and 2 "
      "differ; the largest difference is a factor of 0.25, second over "
      "first (layer 1, head 0, n = 8).");
  EXPECT_EQ(compared_finding(a, {measured(0, 0, 16, 2.0)}),
            "Answer: the two files have no question in common.");
}

ordered_json row(const char* experiment, const char* series, double x,
                 ordered_json lower, ordered_json more = ordered_json()) {
  ordered_json r = {
      {"lower", lower},
      {"parameters",
       {{"experiment", experiment}, {"series", series}, {"x", x}}},
      {"details", ordered_json::object()}};
  if (!more.is_null()) r.update(more, true);
  return r;
}

TEST(ReproducedFinding, HoldsTheRowsAgainstTheClaim) {
  const auto tight = [](double lower) {
    return reproduced_finding(
        "kim-tightness",
        {row("kim-tightness", "closed form", 3, lower, {{"upper", 4.0}})});
  };
  EXPECT_EQ(tight(3.5),
            "Answer: reproduced: the input in closed form is 0.5 below the "
            "bound at most (expected: less than 2).");
  EXPECT_NE(tight(1.0).find("NOT reproduced"), std::string::npos);

  const auto limit = [](double end) {
    return reproduced_finding(
        "large-radius", {row("large-radius", "input 1", 10, end),
                         row("large-radius", "input 1", 1, 50.0),
                         row("large-radius", "limit of input 1", 10, 4.0)});
  };
  EXPECT_NE(limit(4.0).find("Answer: reproduced"), std::string::npos);
  EXPECT_NE(limit(4.1).find("NOT reproduced: the ends are 0.025"),
            std::string::npos);

  const auto cut = [](double value) {
    return reproduced_finding("mass-splitting",
                              {row("mass-splitting", "whole", 0.25, 0.5),
                               row("mass-splitting", "cut", 0.25, value)});
  };
  EXPECT_NE(cut(0.75).find("reproduced: a token that may be cut reacts 1.5"),
            std::string::npos);
  EXPECT_NE(cut(0.5).find("NOT reproduced"), std::string::npos);

  const auto stable = [](double dot, double l2) {
    const auto loss = [](const char* series, double value) {
      return row("kim-stability", series, 18, nullptr, {{"value", value}});
    };
    return reproduced_finding(
        "kim-stability",
        {loss("dot", dot), loss("l2", l2), loss("1-grams", 3.33)});
  };
  EXPECT_NE(stable(3.34, 2.5).find("Answer: reproduced"), std::string::npos);
  EXPECT_NE(stable(2.5, 2.5).find("NOT reproduced"), std::string::npos);
  EXPECT_NE(stable(3.34, 3.3).find("NOT reproduced"), std::string::npos);

  const auto promised = [](double ours, double proved) {
    const auto loss = [](const char* series, double constant, double value) {
      return row("newhouse-shakespeare", series, 2, nullptr,
                 {{"value", value}, {"details", {{"proved_rms", constant}}}});
    };
    return reproduced_finding(
        "newhouse-shakespeare",
        {loss("Newhouse25's architecture, proved here", 2.0, 2.5),
         loss("position heads", proved, ours),
         row("newhouse-shakespeare, identities", "central difference", 11,
             1.64)});
  };
  EXPECT_NE(promised(2.1, 1.9).find("reproduced: models with a promise"),
            std::string::npos);
  EXPECT_NE(promised(2.1, 1.9).find("2.100 against 2.500 nats at 2"),
            std::string::npos);
  EXPECT_NE(promised(2.1, 1.9).find("1.64"), std::string::npos);
  EXPECT_NE(promised(2.6, 1.9).find("NOT reproduced"), std::string::npos);
  // at a larger constant it is no comparison
  EXPECT_EQ(promised(2.1, 5.0).find("nats at"), std::string::npos);

  const auto formula = [](double lower) {
    return reproduced_finding("castin-adversarial",
                              {row("castin-adversarial, R", "construction", 8,
                                   lower, {{"details", {{"formula", 2.0}}}})});
  };
  EXPECT_NE(formula(2.5).find("reproduced: measured over the paper's formula "
                              "is 1.25 at least"),
            std::string::npos);
  EXPECT_NE(formula(1.9).find("NOT reproduced"), std::string::npos);
}

TEST(ReproducedFinding, SaysHowTheValuesOfThePublishedScriptGrow) {
  Findings rows = {row("castin-real, m", "layer 0", 2, nullptr,
                       {{"command", "growth"}, {"exponent", 0.5}})};
  for (const int n : {2, 4, 8, 16})
    rows.push_back(row("castin-real, m", "layer 0", n, std::sqrt(n),
                       {{"model", "m"},
                        {"n", n},
                        {"details", {{"script_value", std::pow(n, 0.25)}}}}));
  const std::string found = reproduced_finding("castin-real", rows);
  EXPECT_NE(found.find("trained layers grow as n^0.500 at most"),
            std::string::npos)
      << found;
  EXPECT_NE(found.find("grows as n^0.250 to n^0.250 in the trained layers"),
            std::string::npos)
      << found;
}

TEST(ReproducedFinding, SaysWhenThereIsNothingToHoldAgainst) {
  EXPECT_EQ(reproduced_finding("kim-tightness", {}), "");
  EXPECT_EQ(reproduced_finding("kim-tightness",
                               {row("kim-tightness", "best found", 3, 1.0)}),
            "Answer: nothing to hold against the claim of kim-tightness in "
            "these rows.");
}

}  // namespace findings_test
}  // namespace lipscope
