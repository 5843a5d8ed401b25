#include "lipscope/cli/record.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/core/errors.h"

namespace lipscope::cli {
namespace {

TEST(Record, IsInconsistentWhenBelowExceedsAbove) {
  Record r;
  r.lower = 2.0;
  EXPECT_TRUE(consistent(to_json(r)));
  r.upper = 2.0;
  r.upper_whp = 2.0;
  r.upper_log10 = 0.302;  // log10(2) = 0.30103
  EXPECT_TRUE(consistent(to_json(r)));

  Record above = r;
  above.upper = 1.999;
  EXPECT_FALSE(consistent(to_json(above)));
  above = r;
  above.upper_whp = 1.999;
  EXPECT_FALSE(consistent(to_json(above)));
  above = r;
  above.upper_log10 = 0.301;
  EXPECT_FALSE(consistent(to_json(above)));
}

TEST(Record, QuestionForgetsTheAnswerAndNothingElse) {
  Record r;
  r.n = 5;
  const std::string asked = question_of(to_json(r));
  r.lower = 1.0, r.steps = 7, r.seconds = 3.0, r.converged = false;
  EXPECT_EQ(question_of(to_json(r)), asked);
  r.mask = "causal";
  EXPECT_NE(question_of(to_json(r)), asked);
}

TEST(Record, RefusesANumberThatIsNotFinite) {
  Record r;
  r.lower = std::nan("");
  EXPECT_THROW(to_json(r), RunError);
}

}  // namespace
}  // namespace lipscope::cli
