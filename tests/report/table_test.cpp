#include "lipscope/report/table.h"

#include <gtest/gtest.h>

#include "lipscope/report/csv.h"

namespace lipscope {
namespace table_test {

using nlohmann::ordered_json;

const std::vector<Column> columns = {
    {"n", "n"}, {"seconds", "seconds", 2}, {"lower", "lower"}, {"by", "by", 1}};
const std::vector<ordered_json> records = {
    {{"n", 8}, {"seconds", 0.25}, {"lower", 1.5}, {"by", "dense-svd"}},
    {{"n", 16}, {"seconds", 1}, {"lower", nullptr}}};

TEST(Table, AlignsToTheRight) {
  EXPECT_EQ(table(columns, records),
            " n  seconds  lower         by\n"
            " 8     0.25    1.5  dense-svd\n"
            "16        1      -          -\n");
}

TEST(Table, RoundsToTheSideThatAFieldSpeaksOf) {
  const double x = 1.2345678;
  EXPECT_EQ(
      table(
          {{"lower", "l"}, {"upper", "u"}, {"upper_whp", "w"}, {"radius", "r"}},
          {{{"lower", x}, {"upper", x}, {"upper_whp", -x}, {"radius", x}}}),
      "      l        u         w        r\n"
      "1.23456  1.23457  -1.23456  1.23457\n");
}

TEST(Table, LeavesOutTheLeastImportantColumnsAndSaysWhich) {
  EXPECT_EQ(table(columns, records, 29), table(columns, records));
  EXPECT_EQ(table(columns, records, 28),
            " n  lower         by\n"
            " 8    1.5  dense-svd\n"
            "16      -          -\n"
            "(not shown: seconds; --wide\n shows all columns)\n");
  EXPECT_EQ(table(columns, records, 19).substr(0, 10), " n  lower\n");
  // what stays in any case stays
  EXPECT_EQ(table(columns, records, 3).substr(0, 10), " n  lower\n");
}

TEST(Table, CountsColumnsNotBytes) {
  EXPECT_EQ(
      table({{"word", "w"}, {"n", "n"}}, {{{"word", "\u00e9\u00e9"}, {"n", 1}},
                                          {{"word", "abc"}, {"n", 2}},
                                          {{"word", "\u6f22"}, {"n", 3}}}),
      "  w  n\n \u00e9\u00e9  1\nabc  2\n \u6f22  3\n");
}

TEST(Csv, HasOneHeaderAndEveryScalar) {
  EXPECT_EQ(csv({{{"n", 8}, {"lower", 0.1}, {"list", {1, 2}}},
                 {{"n", 9},
                  {"lower", nullptr},
                  {"details", {{"right", true}, {"deep", {{"x", 1e-300}}}}}}}),
            "n,lower,details.right,details.deep.x\r\n"
            "8,0.1,,\r\n"
            "9,,true,1e-300\r\n");
  EXPECT_EQ(csv({}), "");
}

TEST(Csv, KeepsAllDigitsAndQuotesWhatItMust) {
  const double third = 1.0 / 3.0;
  const std::string text =
      csv({{{"a", third}, {"b, c", "x"}, {"d", "say \"hi\""}, {"e", "1\n2"}}});
  EXPECT_EQ(text,
            "a,\"b, c\",d,e\r\n"
            "0.3333333333333333,x,\"say \"\"hi\"\"\",\"1\n2\"\r\n");
  EXPECT_EQ(std::stod(text.substr(text.find('\n') + 1)), third);
}

}  // namespace table_test
}  // namespace lipscope
