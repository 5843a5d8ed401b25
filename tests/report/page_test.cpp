#include "lipscope/report/page.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace lipscope {
namespace page_test {

using nlohmann::json;
using nlohmann::ordered_json;

// the data of a page, and that nothing in it can end its script early
json data_of(const std::string& html) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const std::size_t begin = html.find(open) + open.size();
  const std::size_t end = html.find("</script>", begin);
  const std::string text = html.substr(begin, end - begin);
  EXPECT_EQ(text.find('<'), text.npos);
  return json::parse(text);
}

ordered_json measured(int layer, double lower,
                      const std::vector<double>& input) {
  return {{"command", "measure"},
          {"layer", layer},
          {"head", "all"},
          {"lower", lower},
          {"details",
           {{"tokens", std::vector<std::string>(input.size(), "w")},
            {"input_share", input},
            {"output_share", input}}}};
}

TEST(Page, HoldsItsDataWhateverTheStringsAre) {
  Page page;
  const std::string evil = "</script><!--<script>{{data}}{{style}}";
  page.begin_file(evil);
  page.add({{"model", evil}, {evil, 1}});
  const std::string html = page.html();
  const json data = data_of(html);
  EXPECT_EQ(data["files"][0]["name"], evil);
  EXPECT_EQ(data["columns"]["model"]["all"], evil);
  EXPECT_EQ(data["columns"][evil]["all"], 1);
  EXPECT_NE(html.find("<title>lipscope: &lt;/script&gt;&lt;!--"), html.npos);
}

TEST(Page, SurvivesBytesThatAreNotText) {
  Page page;
  page.begin_file("\xff.jsonl");
  page.add({{"model", "\xc3"}});
  EXPECT_EQ(data_of(page.html())["columns"]["model"]["all"], "\xEF\xBF\xBD");
}

// report replaces a page of its own, and no other file
TEST(Page, IsKnownByItsBeginning) {
  const std::string html = Page().html();
  EXPECT_TRUE(is_page(html));
  EXPECT_TRUE(is_page(std::string_view(html).substr(0, 500)));
  for (const char* other :
       {"", "<!doctype html>\n<title>mine</title>", "{\"schema\":1}",
        "<title>lipscope: a</title><!doctype html>"})
    EXPECT_FALSE(is_page(other)) << other;
}

TEST(Page, AsksNothingOfTheNetwork) {
  const std::string html = Page().html();
  for (const char* word : {"src=", "@import", "url(", "<link"})
    EXPECT_EQ(html.find(word), html.npos) << word;
  EXPECT_NE(html.find("default-src 'none'"), html.npos);
}

TEST(Page, KeepsSharesInUnitsOfATenThousandthAndATextOnce) {
  Page page;
  page.begin_file("a");
  page.add(measured(0, 1.0, {0.25, 0.75}));
  page.add(measured(1, 2.0, {0.123, 0.877}));
  const json data = data_of(page.html());
  EXPECT_EQ(data["texts"], json::parse(R"([["w", "w"]])"));
  EXPECT_EQ(data["shares"], json::parse("[[1,0,[1230,8770],[1230,8770],[]],"
                                        "[0,0,[2500,7500],[2500,7500],[]]]"));
  for (const auto& [field, column] : data["columns"].items())
    EXPECT_EQ(field.find("details"), field.npos) << field;
}

TEST(Page, KeepsFlowsEndToEndAndNothingThatIsNone) {
  Page page;
  page.begin_file("a");
  ordered_json record = measured(0, 1.0, {0.25, 0.75});
  for (const char* flow :
       {"[[0.5, -0.25], [0.125, 0.625]]", "[[0.5, 0.5]]", "[[1], [0]]", "null",
        "[[0.5, \"x\"], [0, 0.5]]", "[[0.5, 1e9], [0, 0.5]]", "3"}) {
    record["details"]["flow"] = ordered_json::parse(flow);
    page.add(record);
  }
  const json data = data_of(page.html());
  ASSERT_EQ(data["shares"].size(), 7u);
  EXPECT_EQ(data["shares"][0][4], json::parse("[5000,-2500,1250,6250]"));
  for (std::size_t i = 1; i < 7; ++i)
    EXPECT_EQ(data["shares"][i][4], json::array()) << i;
}

TEST(Page, LeavesOutTheFlowsOfTheSmallestConstantsWhereThereAreTooMany) {
  Page page({.most_flows = 9});
  page.begin_file("a");
  for (const double lower : {1.0, 3.0, 2.0}) {
    ordered_json record = measured(0, lower, {0.25, 0.75});
    record["details"]["flow"] = {{0.25, 0.25}, {0.25, 0.25}};
    page.add(record);
  }
  const json data = data_of(page.html());
  std::vector<std::size_t> sizes;
  for (const json& s : data["shares"]) sizes.push_back(s[4].size());
  EXPECT_EQ(sizes, (std::vector<std::size_t>{4, 4, 0}));
}

TEST(Page, DoesNotCountWhatOnlyDescribesAFigure) {
  Page page;
  page.begin_file("a");
  ordered_json about = {{"command", "reproduce"},
                        {"lower", nullptr},
                        {"parameters", {{"experiment", "kim-tightness"}}},
                        {"details", {{"title", "A title"}}}};
  page.add(about);
  EXPECT_EQ(page.records(), 0u);
  about["lower"] = 2.0;  // a number makes it a row
  page.add(about);
  EXPECT_EQ(page.records(), 1u);
  const json data = data_of(page.html());
  EXPECT_EQ(data["count"], 1);
  EXPECT_EQ(data["files"][0]["records"], 1);
  ASSERT_EQ(data["figures"].size(), 1u);
  EXPECT_EQ(data["figures"][0]["details"]["title"], "A title");
}

TEST(Page, SaysWhatIsFoundOfTheClaimOfEachExperimentOfEachFile) {
  Page page;
  for (const double lower : {2.0, 0.5}) {
    page.begin_file("a");
    page.add({{"command", "reproduce"},
              {"lower", lower},
              {"upper", 2.85},
              {"parameters",
               {{"experiment", "kim-tightness, a part"},
                {"series", "closed form"},
                {"x", 3}}}});
  }
  page.add({{"command", "reproduce"},
            {"lower", 1.0},
            {"parameters", {{"experiment", "unheard-of"}}}});
  const json found = data_of(page.html())["findings"];
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found["0 kim-tightness"].get<std::string>().find("reproduced: "),
            0u);
  EXPECT_EQ(
      found["1 kim-tightness"].get<std::string>().find("NOT reproduced: "), 0u);
}

TEST(Page, LeavesOutTheSharesOfTheSmallestConstantsWhereThereAreTooMany) {
  Page page({.most_shares = 6});
  page.begin_file("a");
  // two layers; the largest of each come first, then the second of each
  for (const double lower : {1.0, 9.0, 5.0})
    for (const int layer : {0, 1})
      page.add(measured(layer, layer == 0 ? lower : lower / 10, {0.5, 0.5}));
  const json data = data_of(page.html());
  EXPECT_EQ(data["shares_of"], 6);
  std::vector<int> kept;
  for (const json& s : data["shares"]) kept.push_back(s[0]);
  EXPECT_EQ(kept, (std::vector<int>{2, 3, 4}));
}

TEST(Page, DoesNotTakeForSharesWhatIsNone) {
  Page page;
  page.begin_file("a");
  ordered_json record = measured(0, 1.0, {0.5, 0.5});
  record["details"]["tokens"] = {"one"};  // of two
  page.add(record);
  record = measured(0, 1.0, {0.5, 1.5});
  page.add(record);
  record["details"]["input_share"] = {"0.5"};
  page.add(record);
  const json data = data_of(page.html());
  EXPECT_EQ(data["shares"].size(), 0u);
  EXPECT_EQ(data["count"], 3);
  EXPECT_TRUE(data["columns"].contains("details.tokens"));
}

TEST(Page, MakesColumnsOfInputParametersAndDetails) {
  Page page;
  page.begin_file("a");
  page.add({{"input", {{"name", "a.txt"}}},
            {"parameters", {{"x", 3}}},
            {"details", {{"y", {{"z", 4}}}}}});
  const json columns = data_of(page.html())["columns"];
  EXPECT_EQ(columns["input.name"]["all"], "a.txt");
  EXPECT_EQ(columns["parameters.x"]["all"], 3);
  EXPECT_EQ(columns["details.y"]["all"]["z"], 4);
}

TEST(Page, LeavesOutOnlyALogarithmThatRepeatsItsNumber) {
  Page page;
  page.begin_file("a");
  page.add({{"upper", 100.0}, {"upper_log10", 2.0}});
  page.add({{"upper", 100.0}, {"upper_log10", 1.5}});
  page.add({{"upper", nullptr}, {"upper_log10", 400.0}});
  EXPECT_EQ(data_of(page.html())["columns"]["upper_log10"]["each"],
            json::parse("[null, 1.5, 400]"));
}

TEST(Page, SetsGrowthFitsApart) {
  Page page;
  page.begin_file("a");
  page.add({{"command", "growth"}, {"exponent", 0.5}});
  page.begin_file("b");
  page.add({{"command", "growth"}, {"exponent", 0.25}});
  EXPECT_EQ(page.records(), 0u);
  const json data = data_of(page.html());
  EXPECT_EQ(data["growth"][0]["file"], 0);
  EXPECT_EQ(data["growth"][1]["exponent"], 0.25);
  EXPECT_EQ(data["growth"][1]["file"], 1);
}

}  // namespace page_test
}  // namespace lipscope
