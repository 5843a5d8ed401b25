#include "lipscope/record/record.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/core/errors.h"

namespace lipscope {
namespace record_test {

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

TEST(Record, ThatWasCutIsNotConverged) {
  Record r;
  EXPECT_EQ(to_json(r)["status"], "converged");
  EXPECT_FALSE(to_json(r).contains("cut"));
  r.cut = "budget";
  EXPECT_EQ(to_json(r)["status"], "not-converged");
  EXPECT_EQ(to_json(r)["cut"], "budget");
}

TEST(Record, TakesTheCertainBoundForTheLikelyOneWhereItIsSmaller) {
  Record r;
  r.upper = 2.0;
  r.upper_by = KnownBy::bound("token_pairs");
  r.upper_whp = 3.0;
  EXPECT_EQ(to_json(r)["upper_whp"], 2.0);
  EXPECT_EQ(to_json(r)["details"]["upper_whp_by"], "token_pairs");
  EXPECT_TRUE(says_no_less_than_certain(to_json(r)));
  r.upper_whp = 1.5;
  EXPECT_EQ(to_json(r)["upper_whp"], 1.5);
  EXPECT_FALSE(to_json(r).contains("details"));
  // nothing is made up where nothing was asked
  r.upper_whp.reset();
  EXPECT_TRUE(to_json(r)["upper_whp"].is_null());
  nlohmann::ordered_json old = to_json(r);
  old["upper_whp"] = 3.0;
  EXPECT_FALSE(says_no_less_than_certain(old));
}

TEST(Record, RefusesANumberThatIsNotFinite) {
  Record r;
  r.lower = std::nan("");
  EXPECT_THROW(to_json(r), RunError);
}

}  // namespace record_test
}  // namespace lipscope
