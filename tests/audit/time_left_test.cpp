#include "lipscope/audit/time_left.h"

#include <gtest/gtest.h>

namespace lipscope::audit {
namespace time_left_test {

constexpr auto pass = TimeLeft::Kind::pass;
constexpr auto measurement = TimeLeft::Kind::measurement;

TEST(TimeLeft, IsUnknownBeforeAnythingIsDone) {
  TimeLeft left;
  left.expect(measurement, 10);
  EXPECT_FALSE(left.seconds({.kind = measurement, .work = 0, .seconds = 5}));
  EXPECT_FALSE(left.knows(measurement));
}

// lengths 10, 20 and 30: after the first a sixth of the work is done, not a
// third
TEST(TimeLeft, CountsWorkAndNotJobs) {
  TimeLeft left;
  for (const double work : {10.0, 20.0, 30.0}) left.expect(measurement, work);
  left.done(measurement, 10, 4);
  EXPECT_TRUE(left.knows(measurement));
  EXPECT_DOUBLE_EQ(*left.seconds({}), 20.0);  // 50 units of 0.4 s
  left.done(measurement, 20, 8);
  EXPECT_DOUBLE_EQ(*left.seconds({}), 12.0);
  left.done(measurement, 30, 12);
  EXPECT_DOUBLE_EQ(*left.seconds({}), 0.0);
}

TEST(TimeLeft, TakesEachKindByItsOwnSpeed) {
  TimeLeft left;
  left.expect(pass, 10);
  left.expect(measurement, 100);
  left.done(pass, 4, 8);  // 2 s a unit, the only speed that is known
  EXPECT_DOUBLE_EQ(*left.seconds({}), 6 * 2.0 + 100 * 2.0);
  left.done(measurement, 50, 5);  // 0.1 s a unit
  EXPECT_DOUBLE_EQ(*left.seconds({}), 6 * 2.0 + 50 * 0.1);
}

TEST(TimeLeft, SubtractsWhatIsSpentOnTheWorkOfNow) {
  TimeLeft left;
  left.expect(measurement, 40);
  left.done(measurement, 10, 10);
  EXPECT_DOUBLE_EQ(*left.seconds({.work = 0, .seconds = 3}), 27.0);
  // slower than expected: not below zero
  EXPECT_DOUBLE_EQ(*left.seconds({.work = 0, .seconds = 99}), 0.0);
}

// a quarter of the first job of 8 took 2 s: 1 s a unit
TEST(TimeLeft, TakesTheFirstJobByItsSteps) {
  TimeLeft left;
  left.expect(measurement, 8 + 12);
  EXPECT_DOUBLE_EQ(*left.seconds({.work = 2, .seconds = 2}), 18.0);
  left.expect(pass, 5);
  left.done(pass, 5, 1);
  EXPECT_DOUBLE_EQ(*left.seconds({.work = 2, .seconds = 2}), 18.0);
}

}  // namespace time_left_test
}  // namespace lipscope::audit
