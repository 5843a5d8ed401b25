#include "lipscope/record/evidence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace lipscope {
namespace evidence_test {

Bound bound_of(double value, double log10, const char* name) {
  Bound b;
  b.name = name;
  b.value = value;
  b.log10 = log10;
  return b;
}

TEST(SetUpper, PutsValueLogarithmAndName) {
  Record r;
  set_upper(r, bound_of(100.0, 2.0, "column_sums"));
  EXPECT_EQ(r.upper, 100.0);
  EXPECT_EQ(r.upper_log10, 2.0);
  EXPECT_EQ(r.upper_by.name(), "column_sums");
  EXPECT_EQ(to_json(r)["upper_is"], "proved");
}

TEST(SetUpper, KeepsTheLogarithmOfWhatDoesNotFitADouble) {
  Record r;
  set_upper(r, bound_of(std::numeric_limits<double>::infinity(), 350.0, "b"));
  EXPECT_FALSE(r.upper);
  EXPECT_EQ(r.upper_log10, 350.0);
  const auto json = to_json(r);
  EXPECT_TRUE(json["upper"].is_null());
  EXPECT_EQ(json["upper_log10"], 350.0);
  EXPECT_EQ(json["upper_is"], "proved");
}

TEST(SetUpper, HasNoLogarithmOfZero) {
  Record r;
  set_upper(r, 0.0, KnownBy::bound("b"));
  EXPECT_EQ(r.upper, 0.0);
  EXPECT_FALSE(r.upper_log10);
}

TEST(SetUpper, ReplacesALargerLogarithmAlone) {
  Record r;
  set_upper(r, bound_of(std::numeric_limits<double>::infinity(), 350.0, "b"));
  set_upper(r, 10.0, KnownBy::bound("c"));
  EXPECT_EQ(r.upper, 10.0);
  EXPECT_EQ(r.upper_log10, 1.0);
  EXPECT_EQ(r.upper_by.name(), "c");
}

TEST(LowerUpper, TakesTheSmallerBound) {
  Record r;
  lower_upper(r, bound_of(100.0, 2.0, "first"));
  EXPECT_EQ(r.upper_by.name(), "first");
  lower_upper(r, bound_of(1000.0, 3.0, "larger"));
  EXPECT_EQ(r.upper_by.name(), "first");
  lower_upper(r, bound_of(10.0, 1.0, "smaller"));
  EXPECT_EQ(r.upper_by.name(), "smaller");
  EXPECT_EQ(r.upper, 10.0);
  const double infinity = std::numeric_limits<double>::infinity();
  lower_upper(r, bound_of(infinity, 400.0, "beyond double"));
  EXPECT_EQ(r.upper_by.name(), "smaller");
}

TEST(LowerUpper, LeavesWhatWasMeasuredWhereABoundIsZero) {
  Record r;
  set_upper(r, 1e-16, NormMethod::dense_gram);
  lower_upper(r, bound_of(0.0, -std::numeric_limits<double>::infinity(), "b"));
  EXPECT_EQ(r.upper_by.name(), "dense-gram");
}

TEST(SetRadii, AreTheLongestTokenAndTheRootMeanSquare) {
  Record r;
  set_radii((Matrix(2, 2) << 3, 4, 0, 0).finished(), r);
  EXPECT_EQ(r.radius_max, 5.0);
  EXPECT_DOUBLE_EQ(*r.radius_rms, 5.0 / std::sqrt(2.0));
}

}  // namespace evidence_test
}  // namespace lipscope
