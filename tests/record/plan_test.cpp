// Plans: what they say of their questions, and how they are cut into parts.

#include "lipscope/record/plan.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>

#include "lipscope/core/errors.h"
#include "lipscope/record/key.h"
#include "lipscope/record/share.h"

namespace lipscope::plan_test {

Record question(Index layer, Index head, Index n, Index sample) {
  Record r;
  r.command = "measure";
  r.model = "model/";
  r.model_sha256 = "abc";
  r.layer = layer;
  r.head = head;
  r.map = "attn";
  r.n = n;
  r.sample = sample;
  r.scope = Scope::input;
  r.input = RecordInput{.from = "text",
                        .name = "text.txt",
                        .sha256 = fmt::format("{} {}", n, sample),
                        .offset = sample};
  return r;
}

Plan plan_of(const std::vector<Index>& lengths, Index samples, Index layers) {
  Plan plan("measure", {"model/", "--text", "text.txt"});
  for (const Index n : lengths)
    for (Index layer = 0; layer < layers; ++layer)
      for (Index head = 0; head < 2; ++head)
        for (Index sample = 0; sample < samples; ++sample)
          plan.add(question(layer, head, n, sample));
  return plan;
}

std::filesystem::path written(const std::string& text) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() /
      fmt::format("lipscope-plan-{}.jsonl", getpid());
  std::ofstream(path) << text;
  return path;
}

std::string refusal(const std::string& text) {
  const std::filesystem::path path = written(text);
  std::string message;
  try {
    read_plan(path);
  } catch (const InputError& e) {
    message = e.what();
  }
  std::filesystem::remove(path);
  return message;
}

TEST(Plan, IsReadAsItWasWritten) {
  const Plan plan = plan_of({2, 5}, 3, 2);
  const std::filesystem::path path = written(plan.text());
  const Plan read = read_plan(path);
  EXPECT_EQ(read.text(), plan.text());
  EXPECT_EQ(read.command(), "measure");
  EXPECT_EQ(read.arguments(), plan.arguments());
  ASSERT_EQ(read.questions().size(), 24u);
  EXPECT_EQ(read.questions()[7].number, 7);
  EXPECT_EQ(read.questions()[7].line_number, 9);
  EXPECT_EQ(words_of(read.questions()[7]), "layer 1, head 0, n = 2, sample 1");
  EXPECT_EQ(read_planned_command(path).arguments, plan.arguments());
  std::filesystem::remove(path);
}

TEST(Plan, HasTheKeysOfTheRecordsThatAnswerIt) {
  Record r = question(1, 0, 5, 2);
  Plan plan("measure", {});
  plan.add(r);
  r.lower = 2.0;
  r.seconds = 3.0;
  EXPECT_EQ(plan.questions()[0].key, question_key(to_json(r)));
  r.layer = 0;
  EXPECT_NE(plan.questions()[0].key, question_key(to_json(r)));
}

TEST(Plan, RefusesWhatWasChangedCutOrIsNoPlan) {
  const std::string text = plan_of({2}, 2, 1).text();
  std::string changed = text;
  changed.replace(changed.find("\"sample\":1"), 10, "\"sample\":7");
  // the sample is a name, the window is not
  EXPECT_EQ(refusal(changed), "");
  changed.replace(changed.find("\"sha256\":\"2 1\""), 14, "\"sha256\":\"2 9\"");
  const std::string message = refusal(changed);
  EXPECT_NE(message.find("line 3: was changed"), std::string::npos) << message;
  const std::string shorter = text.substr(0, text.rfind('{'));
  EXPECT_NE(
      refusal(shorter).find("ends after 3 questions, the first line says 4"),
      std::string::npos)
      << refusal(shorter);
  EXPECT_NE(refusal("{\"schema\":2,\"command\":\"measure\"}\n").find("line 1"),
            std::string::npos);
  EXPECT_NE(refusal("").find("is empty"), std::string::npos);
  const std::string line = text.substr(text.find('\n') + 1);
  EXPECT_NE(refusal(text + line).find("which no other line"),
            std::string::npos);
}

std::vector<const Question*> all_of(const Plan& plan) {
  std::vector<const Question*> all;
  for (const Question& q : plan.questions()) all.push_back(&q);
  return all;
}

TEST(Parts, HaveEveryQuestionOnceAndSimilarNumbersOfWindows) {
  const Plan plan = plan_of({2, 5, 9}, 10, 2);
  for (const std::size_t count : {1, 2, 3, 7, 10, 29, 30, 31, 200}) {
    const auto parts = parts_of(all_of(plan), count, "measure");
    ASSERT_EQ(parts.size(), count);
    std::set<std::size_t> seen;
    std::size_t least = 1000, most = 0;
    for (const auto& part : parts) {
      least = std::min(least, part.size());
      most = std::max(most, part.size());
      for (const std::size_t q : part) EXPECT_TRUE(seen.insert(q).second);
    }
    EXPECT_EQ(seen.size(), plan.questions().size());
    // in windows of four questions: a piece more of each length at most
    EXPECT_LE(most - least, 3u * 4) << count;
  }
}

TEST(Parts, AnswerAllThatIsAskedOfAWindow) {
  const Plan plan = plan_of({2, 5}, 8, 3);
  for (const auto& part : parts_of(all_of(plan), 4, "measure")) {
    std::map<std::pair<Index, Index>, int> questions;
    for (const std::size_t q : part)
      ++questions[{plan.questions()[q].n, plan.questions()[q].sample}];
    EXPECT_EQ(questions.size(), 4u);
    for (const auto& [window, count] : questions) EXPECT_EQ(count, 3 * 2);
  }
}

TEST(Parts, HoldFewLayersWhereThereAreFewWindows) {
  const Plan plan = plan_of({5}, 1, 8);
  for (const auto& part : parts_of(all_of(plan), 4, "measure")) {
    std::set<Index> layers;
    for (const std::size_t q : part) layers.insert(*plan.questions()[q].layer);
    EXPECT_EQ(layers.size(), 2u);
  }
}

TEST(Shard, IsReadFromOneOn) {
  EXPECT_EQ(parse_shard("3/8").number, 3);
  EXPECT_EQ(parse_shard("3/8").count, 8);
  for (const char* wrong : {"0/8", "9/8", "3", "/8", "3/", "a/8", "3/8/2",
                            "-1/8", "+1/8", " 1/8", "99999999999/99999999999"})
    EXPECT_THROW(parse_shard(wrong), InputError) << wrong;
}

TEST(Share, NoticesThatAQuestionIsAnotherOneNow) {
  const Plan plan = plan_of({2}, 4, 1);
  const Share share(plan, parse_shard("2/2"));
  EXPECT_EQ(share.size(), 4);
  ASSERT_TRUE(share.has(2));
  EXPECT_FALSE(share.has(0));
  share.check(2, to_json(question(0, 0, 2, 2)));
  EXPECT_THROW(share.check(2, to_json(question(0, 0, 2, 1))), InputError);
  EXPECT_THROW(share.check_total(5), InputError);
  share.check_total(8);
}

}  // namespace lipscope::plan_test
