#include "lipscope/report/columns.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace lipscope {
namespace columns_test {

using nlohmann::json;
using nlohmann::ordered_json;

// the value of a field in a record, as the page reads it
json value_of(const json& columns, const std::string& field, std::size_t i) {
  const json& c = columns.at(field);
  if (c.contains("all")) return c["all"];
  if (c.contains("each")) return c["each"][i];
  return c["of"][c["at"][i].get<std::size_t>()];
}

TEST(Columns, GiveBackEveryValueOfEveryRecord) {
  const std::vector<ordered_json> records = {
      {{"model", "a<b"}, {"n", 2}, {"lower", 0.5}, {"head", "all"}},
      {{"model", "a<b"}, {"n", 2}, {"lower", 1.25}, {"head", 3}},
      {{"model", "a<b"}, {"n", 4}, {"lower", nullptr}, {"late", {{"x", 1.5}}}},
      {{"model", "a<b"}, {"n", 4}, {"lower", 7.0}, {"head", "all"}}};
  Columns columns;
  for (const ordered_json& r : records) columns.add(r);
  ASSERT_EQ(columns.size(), 4u);
  const json read = json::parse(columns.json());
  for (std::size_t i = 0; i < records.size(); ++i)
    for (const char* field : {"model", "n", "lower", "head", "late"})
      EXPECT_EQ(value_of(read, field, i),
                json(records[i].value(field, ordered_json())))
          << field << " of " << i;
}

TEST(Columns, WriteWhatIsTheSameOnce) {
  Columns columns;
  for (int i = 0; i < 1000; ++i)
    columns.add({{"model", "a long name of a model"}, {"n", i % 2}});
  EXPECT_LT(columns.json().size(), 2200u);
}

TEST(Columns, RoundToSevenDigitsWithoutChangingTheOrder) {
  Columns columns;
  const double x = 1.23456789;
  columns.add({{"v", x}});
  columns.add({{"v", x * (1 + 1e-12)}});
  columns.add({{"v", 1e300}});
  const json read = json::parse(columns.json());
  EXPECT_EQ(value_of(read, "v", 0), 1.234568);
  EXPECT_LE(value_of(read, "v", 0), value_of(read, "v", 1));
  EXPECT_EQ(value_of(read, "v", 2), 1e300);
}

TEST(Columns, RefuseWhatIsNestedWithoutEnd) {
  ordered_json deep = 1;
  for (int i = 0; i < 100; ++i) deep = ordered_json::array({deep});
  Columns columns;
  EXPECT_THROW(columns.add({{"v", deep}}), std::invalid_argument);
}

TEST(Columns, OfNothingAreEmpty) { EXPECT_EQ(Columns().json(), "{}"); }

}  // namespace columns_test
}  // namespace lipscope
