#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "lipscope/experiments/experiment.h"

namespace lipscope {
namespace experiments_test {

// the questions of an experiment, none of them answered
struct Question {
  std::string figure;
  Point at;
  Record record;
};

std::vector<Question> questions(const Experiment& e, bool full) {
  std::vector<Question> asked;
  std::string figure;
  e.run({.full = full, .threads = 1},
        {[&](const Figure& f) { figure = f.name; },
         [&](const Point& at, const Record& r, const Answer&) {
           asked.push_back({figure, at, r});
           return std::optional<double>();
         },
         [](const Point&, const Record&, const GrowthFit&) {
           FAIL() << "a fit to nothing";
         },
         [](const std::string&) {}});
  return asked;
}

TEST(Experiments, AskEachQuestionOnceAndSayWhatItIsAbout) {
  for (const Experiment& e : experiments())
    for (const bool full : {false, true}) {
      std::set<std::string> seen;
      for (const auto& [figure, at, r] : questions(e, full)) {
        std::string place =
            fmt::format("{} | {} | {:.17g} | ", figure, at.series, at.x) +
            r.parameters.dump();
        EXPECT_TRUE(seen.insert(place).second) << place << " stands twice";
        EXPECT_EQ(figure.rfind(e.name, 0), 0u) << figure;
        EXPECT_FALSE(at.series.empty() || r.model.empty() || !r.scope) << place;
        // a constant is in a norm, and a value says what it is
        EXPECT_EQ(r.norm.has_value(), r.value_of.empty()) << place;
        EXPECT_GE(r.n, 1) << place;
        EXPECT_GE(r.d, 1) << place;
        EXPECT_FALSE(r.lower || r.upper || r.value)
            << place << " has an answer";
      }
      EXPECT_FALSE(seen.empty()) << e.name;
    }
}

TEST(Experiments, InFullAskForNoLess) {
  for (const Experiment& e : experiments())
    EXPECT_GE(questions(e, true).size(), questions(e, false).size()) << e.name;
}

}  // namespace experiments_test
}  // namespace lipscope
