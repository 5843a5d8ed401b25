// Every field of every command's records, changed to another type or taken
// away: --resume and report refuse the file by its line, or get along with it.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/cli/program.h"
#include "tests/io/test_files.h"

namespace lipscope {
namespace hostile_records_slow_test {

using nlohmann::ordered_json;

ordered_json of_another_type(const ordered_json& value) {
  if (value.is_string()) return 7;
  if (value.is_number()) return "x";
  if (value.is_boolean()) return "yes";
  if (value.is_array()) return {{"a", 1}};
  if (value.is_object()) return {1, "b"};
  return {{"a", {1, 2}}};  // for null
}

struct Changed {
  std::string what;
  ordered_json record;
};

// the record with each of its fields, and those one level down, as they should
// not be
std::vector<Changed> changed(const ordered_json& record) {
  std::vector<Changed> all;
  const auto change = [&](const std::vector<std::string>& path,
                          const ordered_json& value) {
    ordered_json other = record, without = record;
    ordered_json *at = &other, *gone = &without;
    for (std::size_t i = 0; i + 1 < path.size(); ++i) {
      at = &(*at)[path[i]];
      gone = &(*gone)[path[i]];
    }
    (*at)[path.back()] = of_another_type(value);
    gone->erase(path.back());
    all.push_back({path.front() + ">" + path.back(), std::move(other)});
    all.push_back({"no " + path.front() + ">" + path.back(), without});
  };
  for (const auto& [field, value] : record.items()) {
    change({field}, value);
    if (!value.is_object()) continue;
    for (const auto& [inner, item] : value.items())
      change({field, inner}, item);
  }
  return all;
}

void expect_words_of_its_own(const test::Outcome& ended) {
  EXPECT_TRUE(ended.code == 0 || ended.code == 2 || ended.code == 3 ||
              ended.code == 4)
      << ended.code << ": " << ended.err;
  for (const char* foreign : {"exception", "[json", "another form"})
    EXPECT_EQ(ended.err.find(foreign), std::string::npos) << ended.err;
}

class HostileRecords : public testing::TestWithParam<const char*> {};

TEST_P(HostileRecords, AreRefusedByLineOrReadAsTheyAre) {
  const test::Folder folder;
  std::string text;
  while (text.size() < 2000) text += "the quick brown fox jumps over it. ";
  test::write_file(folder / "text.txt", text);
  std::string arguments = GetParam();
  if (arguments.find("TRAINED") != std::string::npos) {
    ASSERT_EQ(test::lipscope("train " + (folder / "text.txt") + " --out " +
                             (folder / "model") +
                             " --layers 1 --width 8 --heads 2 --context 8 "
                             "--steps 2 --batch 2 --eval-every 2 --measure 0")
                  .code,
              0);
    arguments.replace(arguments.find("TRAINED"), 7, folder / "model");
    arguments.replace(arguments.find("TEXT"), 4, folder / "text.txt");
  }
  const std::string file = folder / "a.jsonl";
  const std::string resumed = arguments + " --resume --out " + file;
  ASSERT_EQ(test::lipscope(arguments + " --out " + file).code, 0);
  const std::string lines = test::contents(file);
  const std::size_t end = lines.find('\n');
  const ordered_json first = ordered_json::parse(lines.substr(0, end));
  for (const auto& [what, record] : changed(first)) {
    SCOPED_TRACE(what);
    test::write_file(file, record.dump() + lines.substr(end));
    expect_words_of_its_own(test::lipscope(resumed));
    test::write_file(file, record.dump() + lines.substr(end));
    expect_words_of_its_own(
        test::lipscope("report " + file + " --out " + (folder / "page.html")));
  }
}

INSTANTIATE_TEST_SUITE_P(
    OfEveryCommand, HostileRecords,
    testing::Values(
        "measure --random d=4,heads=1,scale=1 --lengths 2,3 --tokens",
        "bound --random d=4,heads=1 --length 3 --radius 1",
        "search --random d=3,heads=1 --length 2 --radius 1 --restarts 1 "
        "--max-evaluations 20",
        "meanfield --random d=3,heads=1,scale=1 --length 2 --duplicate 2",
        "invert --random d=4,heads=1 --length 3 --log-det --probes 2",
        "certify TRAINED --text TEXT --positions 2 --iterations 2",
        "reproduce dot-product-unbounded"));

}  // namespace hostile_records_slow_test
}  // namespace lipscope
