#include "lipscope/cli/meanfield_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "lipscope/report/table.h"
#include "lipscope/report/wrap.h"

namespace lipscope::cli {

using nlohmann::ordered_json;

namespace {

// the record with what stands in its own columns lifted out of its details
ordered_json meanfield_line(const ordered_json& record) {
  ordered_json line = record;
  const ordered_json& asked = record["parameters"];
  line["change"] = asked["change"];
  if (asked.contains("pieces"))
    line["change"] = fmt::format("{} x{}", asked["change"].get<std::string>(),
                                 asked["pieces"].dump());
  if (asked.contains("optimise"))
    line["change"] =
        fmt::format("{}, worst {}", asked["change"].get<std::string>(),
                    asked["optimise"].get<std::string>());
  if (line["upper"].is_null() && line["upper_log10"].is_number())
    line["upper"] = fmt::format("1e{:.1f}", line["upper_log10"].get<double>());
  if (record.contains("details"))
    for (const char* field : {"token", "relative_gap"})
      if (record["details"].contains(field))
        line[field] = record["details"][field];
  return line;
}

const std::vector<Meaning>& changes_explained() {
  static const std::vector<Meaning> all = {
      {"move",
       "tokens move whole, by any small amounts: the local constant without "
       "splitting"},
      {"split",
       "tokens may also be cut, and the halves move apart: the local constant; "
       "'token' is the one that reacts most to being cut"},
      {"duplicate",
       "every token listed this number of times with its share of the mass, "
       "then moved: the same number as 'split' by another way"},
      {"moved",
       "what really happened to the distance when the tokens were moved along "
       "the worst direction, by exact optimal transport"},
      {"parted", "the same when the token was cut into halves that parted"}};
  return all;
}

}  // namespace

std::string meanfield_table(const std::vector<ordered_json>& records,
                            const View& view) {
  if (records.empty()) return "";
  const ordered_json& first = records.front();
  std::string text =
      fmt::format("{}: map {}, kind {}, mask {}, distance {}\n\n",
                  cell(first["model"]), cell(first["map"]), cell(first["kind"]),
                  cell(first["mask"]), cell(first["norm"]));

  std::vector<Column> columns;
  if (!first["layer"].is_null()) columns.push_back({"layer", "layer"});
  columns.insert(columns.end(), {{"head", "head"},
                                 {"n", "n"},
                                 {"sample", "sample", 1},
                                 {"scope", "over", 4},
                                 {"radius_max", "max |x|", 7},
                                 {"change", "change"},
                                 {"token", "token", 2},
                                 {"lower", "lower"},
                                 {"upper_whp", "upper (whp)"},
                                 {"upper", "upper"},
                                 {"upper_by", "by", 3},
                                 {"relative_gap", "duality gap", 6},
                                 {"status", "status", 5}});
  std::vector<ordered_json> lines;
  std::set<std::string> changes;
  for (const ordered_json& record : records) {
    lines.push_back(meanfield_line(record));
    changes.insert(record["parameters"]["change"].get<std::string>());
  }
  text += table(columns, lines, view.width);
  if (view.quiet) return text;

  std::vector<Meaning> meanings;
  for (const Meaning& m : changes_explained())
    if (changes.contains(m.word)) meanings.push_back(m);
  if (changes.contains("moved") || changes.contains("parted"))
    meanings.push_back({"duality gap",
                        "how far, relatively, the transport plans may be from "
                        "the best ones"});
  meanings.push_back(
      {"lower, upper",
       "the constant in the distance is at least, and at most, this; '-' where "
       "nothing is proved. Over a ball: of all measures whose tokens lie in "
       "it"});
  return text + "\n" + legend(meanings, view.width);
}

}  // namespace lipscope::cli
