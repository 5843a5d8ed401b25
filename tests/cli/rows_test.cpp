// What a command prints at its end: rows in an order, CSV, the answer.

#include <algorithm>

#include "tests/cli/program.h"

namespace lipscope {
namespace rows_test {

using test::expect_refusal;
using test::Folder;
using test::json_lines;
using test::Outcome;

const std::string sweep =
    "measure --random d=12,heads=3,scale=0.5 --lengths 2,6,4 --heads each";

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> found;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) found.push_back(line);
  return found;
}

std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> found(1);
  for (const char c : line) {
    if (c == ',')
      found.emplace_back();
    else if (c != '\r')
      found.back() += c;
  }
  return found;
}

// the column of a CSV without quoted commas, as numbers
std::vector<double> column(const std::string& csv, const std::string& name) {
  const auto rows = lines(csv);
  const auto header = cells(rows.at(0));
  const auto at = std::find(header.begin(), header.end(), name);
  EXPECT_NE(at, header.end()) << name << " is not in " << rows.at(0);
  std::vector<double> values;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    // the recipe of the weights has two commas in quotes
    std::string row = rows[i];
    const std::size_t open = row.find('"');
    if (open != row.npos) {
      const std::size_t close = row.find('"', open + 1);
      row = row.substr(0, open) + "model" + row.substr(close + 1);
    }
    values.push_back(std::stod(cells(row).at(at - header.begin())));
  }
  return values;
}

TEST(Rows, AreSortedAndCut) {
  const auto sorted =
      column(test::lipscope(sweep + " --csv --sort lower").out, "lower");
  ASSERT_EQ(sorted.size(), 9u);
  EXPECT_TRUE(std::is_sorted(sorted.rbegin(), sorted.rend()));
  const auto up =
      column(test::lipscope(sweep + " --csv --sort lower:asc").out, "lower");
  EXPECT_TRUE(std::is_sorted(up.begin(), up.end()));
  const auto top =
      column(test::lipscope(sweep + " --csv --top 2").out, "lower");
  ASSERT_EQ(top.size(), 2u);
  EXPECT_EQ(top[0], sorted[0]);
  EXPECT_EQ(top[1], sorted[1]);
  EXPECT_EQ(column(test::lipscope(sweep + " --csv --sort n --top 1").out, "n"),
            std::vector<double>({6}));
  // the table has the same rows
  const std::string table = test::lipscope(sweep + " --quiet --top 2").out;
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 7) << table;
  for (const std::string option : {"--sort n", "--top 3", "--csv"})
    expect_refusal(test::lipscope(sweep + " --json " + option), 2,
                   {option.substr(0, option.find(' ')), "--json"});
  expect_refusal(test::lipscope(sweep + " --top 0"), 2, {"--top"});
}

TEST(Rows, AreCsvWithAllDigits) {
  const Folder folder;
  const std::string out = folder / "o.jsonl";
  const Outcome o = test::lipscope(sweep + " --csv --out " + out);
  ASSERT_EQ(o.code, 0) << o.err;
  const auto records = json_lines(test::contents(out));
  const auto lower = column(o.out, "lower");
  ASSERT_EQ(lower.size(), records.size());
  for (std::size_t i = 0; i < records.size(); ++i)
    EXPECT_EQ(lower[i], records[i]["lower"].get<double>());
  EXPECT_EQ(o.out.find("Answer"), std::string::npos);
  EXPECT_EQ(lines(o.out).at(0).back(), '\r');
}

TEST(Rows, EndWithTheAnswer) {
  const Outcome o = test::lipscope(sweep + " --quiet");
  const auto records = json_lines(test::lipscope(sweep + " --json").out);
  const auto most = std::max_element(
      records.begin(), records.end(),
      [](const auto& a, const auto& b) { return a["lower"] < b["lower"]; });
  const std::string last = lines(o.out).back();
  EXPECT_EQ(last.rfind("Answer: head " + (*most)["head"].dump() +
                           " reacts most, at n = " + (*most)["n"].dump(),
                       0),
            0u)
      << last;
  // after the last row, and not among JSON
  EXPECT_EQ(test::lipscope(sweep + " --json").out.find("Answer"),
            std::string::npos);
  for (const std::string command :
       {"bound --random d=8,heads=2 --length 8 --radius 2",
        "search --random d=2,heads=1,scale=1 --length 2 --radius 1 --restarts "
        "0 --max-evaluations 20",
        "meanfield --random d=4,heads=1,scale=1 --length 3",
        "invert --random d=4,heads=1,scale=1 --length 3",
        "reproduce dot-product-unbounded"}) {
    const Outcome quiet = test::lipscope(command + " --quiet");
    EXPECT_EQ(quiet.code, 0) << quiet.err;
    EXPECT_EQ(lines(quiet.out).back().rfind("Answer: ", 0), 0u)
        << command << "\n"
        << quiet.out;
  }
  EXPECT_NE(test::lipscope("reproduce dot-product-unbounded --quiet")
                .out.find("Answer: reproduced: "),
            std::string::npos);
}

TEST(Rows, HaveNoGrowthFromThreeLengths) {
  EXPECT_EQ(test::lipscope(sweep).out.find("Growth"), std::string::npos);
  EXPECT_NE(test::lipscope("measure --random d=12,heads=3 --lengths 2,4,6,8")
                .out.find("Growth"),
            std::string::npos);
}

TEST(Rows, OfASearchSayItsBudgetAndWhatWasCut) {
  const std::string ask =
      "search --random d=48,heads=4,scale=1 --lengths 24,32 --radius 3 ";
  const Outcome cut = test::lipscope(ask + "--budget 0.2");
  EXPECT_EQ(cut.code, 0) << cut.err;
  EXPECT_NE(cut.err.find("searching 2 maps, 0.2 s in all (--budget)"),
            std::string::npos)
      << cut.err;
  EXPECT_EQ(cut.out.find("converged  "), std::string::npos) << cut.out;
  EXPECT_NE(cut.out.find(" starts"), std::string::npos) << cut.out;
  EXPECT_NE(cut.out.find("2 of 2 searches ended early"), std::string::npos)
      << cut.out;
  for (const auto& r :
       json_lines(test::lipscope(ask + "--budget 0.2 --json").out)) {
    if (r["parameters"]["of"] == "best") {
      EXPECT_EQ(r["status"], "not-converged");
    }
  }
}

}  // namespace rows_test
}  // namespace lipscope
