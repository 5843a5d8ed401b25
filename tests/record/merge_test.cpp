// What becomes of answers that several workers give to one plan.

#include "lipscope/record/merge.h"

#include <gtest/gtest.h>

#include <functional>

#include "lipscope/core/errors.h"
#include "lipscope/record/provenance.h"
#include "lipscope/record/records.h"
#include "lipscope/record/share.h"

namespace lipscope::merge_test {

using nlohmann::ordered_json;

Record question(Index layer, Index n, Index sample) {
  Record r;
  r.command = "measure";
  r.model = "model/";
  r.model_sha256 = "abc";
  r.layer = layer;
  r.map = "attn";
  r.n = n;
  r.d = 4;
  r.sample = sample;
  r.scope = Scope::input;
  r.parameters["tolerance"] = 1e-3;
  r.input = RecordInput{.from = "text",
                        .name = "text.txt",
                        .sha256 = fmt::format("{} {}", n, sample),
                        .offset = n * sample};
  return r;
}

// two layers at two windows of two lengths
Plan plan_of_eight() {
  Plan plan("measure", {"model/"});
  for (const Index n : {2, 3})
    for (const Index layer : {0, 1})
      for (const Index sample : {0, 1}) plan.add(question(layer, n, sample));
  return plan;
}

ordered_json answer(Index layer, Index n, Index sample, double lower = 2.0,
                    const std::string& cpu = "one") {
  Record r = question(layer, n, sample);
  r.lower = lower;
  r.upper = 3.0;
  r.radius_rms = 1.0;
  r.seconds = 0.1;
  ordered_json json = to_json(r);
  json["build"] = "Release";
  json["cpu"] = cpu;
  return json;
}

std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

void expect_words(const std::string& text,
                  const std::vector<std::string>& words) {
  for (const std::string& word : words)
    EXPECT_NE(text.find(word), std::string::npos) << word << " in: " << text;
}

TEST(Merge, OrdersAnswersAsThePlanDoes) {
  const Plan plan = plan_of_eight();
  Merge merge(plan);
  for (const Index n : {3, 2})
    for (const Index sample : {1, 0})
      for (const Index layer : {1, 0})
        merge.add(answer(layer, n, sample), "A: line 1");
  std::vector<std::string> order;
  merge.write(
      [&](const ordered_json& row) {
        order.push_back(fmt::format("{} {} {}", row["n"].dump(),
                                    row["layer"].dump(), row["sample"].dump()));
      },
      [](const ordered_json&) {});
  EXPECT_EQ(order,
            (std::vector<std::string>{"2 0 0", "2 0 1", "2 1 0", "2 1 1",
                                      "3 0 0", "3 0 1", "3 1 0", "3 1 1"}));
  EXPECT_TRUE(merge.missing().empty());
}

TEST(Merge, CountsEqualAnswersOnceWhateverTheirTimes) {
  const Plan plan = plan_of_eight();
  Merge merge(plan);
  ordered_json again = answer(0, 2, 0);
  again["seconds"] = 99.0;
  again["machine"] = "another one";
  again["details"]["input_seconds"] = 5.0;
  ordered_json first = answer(0, 2, 0);
  first["details"]["input_seconds"] = 7.0;
  EXPECT_TRUE(merge.add(first, "A: line 1"));
  EXPECT_FALSE(merge.add(again, "B: line 1"));
  EXPECT_EQ(merge.records(), 1);
  EXPECT_EQ(merge.duplicates(), 1);
  EXPECT_TRUE(merge.differences().empty());
}

TEST(Merge, RefusesUnequalAnswersOfOneBuildAndKindOfCpuAndShowsBoth) {
  const Plan plan = plan_of_eight();
  Merge merge(plan);
  merge.add(answer(0, 2, 0, 2.0), "A.jsonl: line 4");
  EXPECT_THROW(merge.add(answer(0, 2, 0, 2.0000000001), "B.jsonl: line 7"),
               MergeConflict);
  expect_words(
      message_of(
          [&] { merge.add(answer(0, 2, 0, 2.0000000001), "B.jsonl: line 7"); }),
      {"A.jsonl: line 4", "B.jsonl: line 7", "lower 2.0 and 2.0000000001",
       "\"lower\":2.0,", "\"lower\":2.0000000001,"});
}

TEST(Merge, KeepsTheFirstOfDifferentCpusAndReportsTheDifference) {
  const Plan plan = plan_of_eight();
  Merge merge(plan);
  merge.add(answer(0, 2, 0, 2.0, "one"), "A: line 1");
  EXPECT_FALSE(merge.add(answer(0, 2, 0, 2.0001, "two"), "B: line 1"));
  ASSERT_EQ(merge.differences().size(), 1u);
  expect_words(merge.differences()[0],
               {"A: line 1 is kept", "B: line 1", "2.0001"});
  merge.write([](const ordered_json& row) { EXPECT_EQ(row["lower"], 2.0); },
              [](const ordered_json&) {});
}

TEST(Merge, KeepsWhatWasMadeForTheFirstOfTwoEqualWindows) {
  // one content at two places of the text
  Plan plan("measure", {"model/"});
  Record first = question(0, 2, 0), second = question(0, 2, 1);
  second.input->sha256 = first.input->sha256;
  plan.add(first);
  plan.add(second);
  ordered_json of_second = answer(0, 2, 1, 2.0001, "two");
  of_second["input"]["sha256"] = first.input->sha256;
  Merge merge(plan);
  merge.add(of_second, "A: line 1");
  EXPECT_TRUE(merge.missing().empty()) << "one answer serves both places";
  merge.add(answer(0, 2, 0, 2.0, "one"), "B: line 1");
  std::vector<std::pair<int, double>> rows;
  merge.write(
      [&](const ordered_json& row) {
        rows.emplace_back(row["sample"].get<int>(), row["lower"].get<double>());
      },
      [](const ordered_json&) {});
  EXPECT_EQ(rows, (std::vector<std::pair<int, double>>{{0, 2.0}, {1, 2.0}}));
}

TEST(Merge, RefusesDifferencesBeyondTheTolerance) {
  const Plan plan = plan_of_eight();
  for (const bool wide : {false, true}) {
    Merge merge(plan, {.tolerance = wide ? std::optional(0.1) : std::nullopt});
    merge.add(answer(0, 2, 0, 2.0, "one"), "A: line 1");
    const std::string message = message_of(
        [&] { merge.add(answer(0, 2, 0, 2.1, "two"), "B: line 1"); });
    if (wide)
      EXPECT_EQ(message, "");
    else
      expect_words(message, {"differ by more than 0.001", "A: line 1"});
  }
}

TEST(Merge, RefusesEnclosuresThatContradictEachOther) {
  const Plan plan = plan_of_eight();
  Merge merge(plan, {.tolerance = 10.0});
  merge.add(answer(0, 2, 0, 2.0, "one"), "A: line 1");
  ordered_json above = answer(0, 2, 0, 3.5, "two");
  above["upper"] = 4.0;  // the other one proves 3
  expect_words(message_of([&] { merge.add(above, "B: line 1"); }),
               {"contradict each other"});
}

TEST(Merge, RefusesWhatWasChangedOrIsOfAnotherPlan) {
  const Plan plan = plan_of_eight();
  Merge merge(plan);
  ordered_json changed = sealed(answer(0, 2, 0));
  changed["lower"] = 1.9;
  expect_words(message_of([&] { merge.add(changed, "A: line 3"); }),
               {"A: line 3", "was changed"});
  expect_words(message_of([&] { merge.add(answer(7, 2, 0), "A: line 4"); }),
               {"A: line 4", "answers no question"});
  ordered_json old = answer(0, 2, 0);
  old["version"] = "0.0.1";
  expect_words(message_of([&] { merge.add(old, "A: line 5"); }),
               {"A: line 5", "version 0.0.1"});
  ordered_json contradiction = answer(0, 2, 0);
  contradiction["upper"] = 1.0;
  EXPECT_THROW(merge.add(contradiction, "A: line 6"), Violation);
  ordered_json no_number = answer(0, 2, 0);
  no_number["lower"] = "two";
  expect_words(message_of([&] { merge.add(no_number, "A: line 7"); }),
               {"A: line 7", "lower"});
  EXPECT_EQ(merge.missing().size(), 8u);
  EXPECT_TRUE(merge.add(sealed(answer(0, 2, 0)), "A: line 8"));
}

TEST(Merge, TakesWhatABudgetCutForNoAnswer) {
  const Plan plan = plan_of_eight();
  Merge merge(plan);
  ordered_json cut = answer(0, 2, 0);
  cut["cut"] = "budget";
  EXPECT_FALSE(merge.add(cut, "A: line 1"));
  EXPECT_EQ(merge.cut(), 1);
  EXPECT_EQ(merge.missing().size(), 8u);
}

TEST(Merge, WantsAllBoundsOfAQuestion) {
  Plan plan("bound", {"model/"});
  Record asked = question(0, 2, 0);
  asked.command = "bound";
  asked.input.reset();
  asked.scope.reset();
  plan.add(asked);
  const auto bound = [&](const std::string& name, double log10) {
    Record r = asked;
    r.scope = Scope::ball;
    r.parameters["bound"] = name;
    r.upper_log10 = log10;
    r.details["bounds"] = 2;
    return to_json(r);
  };
  Merge merge(plan);
  merge.add(bound("worse", 2.0), "A: line 1");
  EXPECT_EQ(merge.missing().size(), 1u);
  merge.add(bound("better", 1.0), "B: line 1");
  EXPECT_TRUE(merge.missing().empty());
  std::vector<std::string> names;
  merge.write(
      [&](const ordered_json& row) {
        names.push_back(row["parameters"]["bound"]);
      },
      [](const ordered_json&) {});
  EXPECT_EQ(names, (std::vector<std::string>{"better", "worse"}));
}

TEST(Merge, TakesASearchForAnsweredWhenItsBestIsThere) {
  Plan plan("search", {"model/"});
  Record asked = question(0, 2, 0);
  asked.command = "search";
  asked.input.reset();
  asked.parameters["of"] = "best";
  plan.add(asked);
  const auto found = [&](const std::string& of) {
    Record r = asked;
    r.parameters["of"] = of;
    r.lower = 1.0;
    r.details["starts"] = ordered_json::array();
    for (const char* start : {"b", "a"})
      r.details["starts"].push_back({{"start", start}});
    return to_json(r);
  };
  Merge merge(plan);
  merge.add(found("start a"), "A: line 1");
  EXPECT_EQ(merge.missing().size(), 1u);
  merge.add(found("best"), "A: line 2");
  merge.add(found("start b"), "B: line 1");
  EXPECT_TRUE(merge.missing().empty());
  std::vector<std::string> order;
  merge.write(
      [&](const ordered_json& row) {
        order.push_back(row["parameters"]["of"]);
      },
      [](const ordered_json&) {});
  EXPECT_EQ(order, (std::vector<std::string>{"start b", "start a", "best"}));
}

}  // namespace lipscope::merge_test
