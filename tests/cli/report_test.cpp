// lipscope report and lipscope compare, as a user runs them. What the page
// shows is tested in a browser, tests/page/.

#include <gtest/gtest.h>

#include <fstream>

#include "lipscope/audit/token_shares.h"
#include "tests/cli/program.h"

namespace lipscope {
namespace report_test {

using test::contents;
using test::expect_refusal;
using test::Outcome;

class Report : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& content) {
    std::ofstream(folder / name, std::ios::binary) << content;
    return folder / name;
  }
  const test::Folder folder;
};

TEST_F(Report, WritesThePageAndSaysWhereItIs) {
  const Outcome o =
      test::lipscope("report " + write("a.jsonl", "{\"lower\":1.5}\n{}\n") +
                     " --out " + (folder / "page.html"));
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_NE(o.out.find(folder / "page.html"), o.out.npos) << o.out;
  EXPECT_NE(o.out.find("2 records"), o.out.npos) << o.out;
  EXPECT_EQ(contents(folder / "page.html").find("<!doctype html>"), 0u);
}

TEST_F(Report, ReadsSeveralFilesAndAnEmptyOne) {
  const Outcome o = test::lipscope("report " + write("a.jsonl", "{}\n") + " " +
                                   write("b.jsonl", "") + " --quiet --out " +
                                   (folder / "page.html"));
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(o.out, "");
}

TEST_F(Report, ReadsTheNamesThatBoundsHadInSchema1) {
  const std::string old =
      R"({"schema":1,"command":"measure","lower":1.5,"upper":2.5,)"
      R"("upper_by":"own_split"})"
      "\n";
  for (const std::string command : {"report ", "compare "}) {
    const Outcome o = test::lipscope(
        command + write("a.jsonl", old) +
        (command == "compare " ? " " + write("b.jsonl", old) : "") +
        " --quiet --out " + (folder / "page.html"));
    EXPECT_EQ(o.code, 0) << o.err;
    const std::string page = contents(folder / "page.html");
    EXPECT_NE(page.find("\"split_paths\""), page.npos) << command;
    EXPECT_EQ(page.find("own_split"), page.npos) << command;
  }
}

TEST_F(Report, RefusesWhatItCannotReadOrWrite) {
  expect_refusal(test::lipscope("report " + (folder / "absent.jsonl")), 2,
                 {"absent.jsonl"});
  expect_refusal(test::lipscope("report " + write("n.jsonl", "nonsense\n") +
                                " --out " + (folder / "page.html")),
                 2, {"n.jsonl", "line 1"});
  EXPECT_FALSE(std::filesystem::exists(folder / "page.html"));
  const std::string good = write("a.jsonl", "{}\n");
  expect_refusal(
      test::lipscope("report " + good + " --out " + (folder / "no/page.html")),
      2, {"no/page.html"});
  expect_refusal(test::lipscope("compare " + good), 2, {"files"});
}

TEST_F(Report, TellsOfNumbersThatContradictEachOther) {
  const Outcome o = test::lipscope(
      "report --quiet " + write("a.jsonl", "{\"lower\":2,\"upper\":1}\n") +
      " --out " + (folder / "page.html"));
  EXPECT_EQ(o.code, 4);
  EXPECT_TRUE(std::filesystem::exists(folder / "page.html"));
}

TEST(TokenShares, AreSquaresAndNothingWhereNothingComesOut) {
  Measurement m;
  m.direction = Vector(4);
  m.direction << 0.6, 0.0, 0.0, 0.8;  // two tokens of two numbers
  m.image = Vector::Zero(6);
  const auto details = audit::token_shares({"a", " b"}, 2, m);
  EXPECT_EQ(details["input_share"], (std::vector<double>{0.36, 0.64}));
  EXPECT_TRUE(details["output_share"].is_null());
  EXPECT_EQ(details["tokens"], (std::vector<std::string>{"a", " b"}));
  EXPECT_THROW(audit::token_shares({}, 3, m), std::invalid_argument);
}

}  // namespace report_test
}  // namespace lipscope
