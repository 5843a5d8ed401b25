#include "lipscope/report/progress_line.h"

#include <gtest/gtest.h>

#include "lipscope/report/wrap.h"

namespace lipscope {
namespace progress_line_test {

const ProgressText long_one{
    .done = 2,
    .total = 132,
    .doing = "n = 128, layer 10, head 31, step 200 of at most 300",
    .left = "at most 45 min left",
    .share = 0.5};

TEST(ProgressLine, ShowsBarWorkAndTimeWhereThereIsRoom) {
  EXPECT_EQ(progress_line(long_one, 200),
            "[############............] 2/132 n = 128, layer 10, head 31, "
            "step 200 of at most 300, at most 45 min left");
}

TEST(ProgressLine, KeepsTheTimeThatIsLeftOn80Columns) {
  EXPECT_EQ(progress_line(long_one, 80),
            "2/132 n = 128, layer 10, head 31, step 200 of at most 300, at "
            "most 45 min left");
  EXPECT_EQ(progress_line(long_one, 70),
            "2/132 n = 128, layer 10, head 31, at most 45 min left");
  ProgressText shorter = long_one;
  shorter.doing = "n = 128, layer 10, step 20 of at most 300";
  shorter.left = "45 s left";
  EXPECT_EQ(progress_line(shorter, 80),
            "[######......] 2/132 n = 128, layer 10, step 20 of at most 300, "
            "45 s left");
}

TEST(ProgressLine, IsAlwaysNarrowerThanTheTerminal) {
  for (std::size_t width = 0; width < 150; ++width) {
    const std::string line = progress_line(long_one, width);
    EXPECT_TRUE(width <= 40 || line.find("45 min left") != line.npos) << width;
    EXPECT_TRUE(line.empty() || display_width(line) < width) << width;
  }
}

}  // namespace progress_line_test
}  // namespace lipscope
