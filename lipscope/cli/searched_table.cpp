#include "lipscope/cli/searched_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "lipscope/report/table.h"
#include "lipscope/report/wrap.h"

namespace lipscope::cli {

using nlohmann::ordered_json;

Rows best_of_each(const Rows& records) {
  Rows best;
  std::copy_if(
      records.begin(), records.end(), std::back_inserter(best),
      [](const ordered_json& r) { return r["parameters"]["of"] == "best"; });
  return best;
}

namespace {

// "converged", or what ended it: a search is more than its best ascent
std::string search_status(const ordered_json& line) {
  const auto left = line.value("starts_left", 0);
  const auto cut = line.value("starts_cut", 0);
  const auto starts =
      line.contains("starts") ? static_cast<int>(line["starts"].size()) : 0;
  if (left + cut > 0)
    return fmt::format("{} of {} starts", starts - cut, starts + left);
  return line.value("status", "");
}

}  // namespace

std::string searched_table(const Rows& records, const View& view) {
  if (records.empty()) return "";
  Rows lines;
  for (const ordered_json& r : records) {
    lines.push_back(r);
    lines.back().update(r["details"]);
    lines.back()["status"] = search_status(lines.back());
  }
  const ordered_json& first = lines.front();
  std::string text = fmt::format(
      "{}: map {}, kind {}, mask {}, norm {}, over sequences in the region "
      "named\n\n",
      cell(first["model"]), cell(first["map"]), cell(first["kind"]),
      cell(first["mask"]), cell(first["norm"]));
  std::vector<Column> columns;
  if (!first["layer"].is_null()) columns.push_back({"layer", "layer"});
  columns.insert(columns.end(), {{"head", "head"},
                                 {"n", "n"},
                                 {"region", "region", 2},
                                 {"lower", "lower"},
                                 {"upper", "upper"},
                                 {"upper_log10", "log10", 8},
                                 {"ratio", "upper/lower"},
                                 {"start", "found from", 3},
                                 {"before", "there", 6},
                                 {"upper_by", "proved by", 4},
                                 {"steps", "evaluations", 5},
                                 {"status", "status", 1},
                                 {"seconds", "seconds", 7}});
  text += table(columns, lines, view.width);
  if (lines.size() == 1 && first["starts"].size() > 1) {
    text += "\nFrom each start\n\n";
    text += table({{"start", "start"},
                   {"before", "there"},
                   {"value", "climbed to"},
                   {"evaluations", "evaluations", 2},
                   {"status", "status", 1}},
                  first["starts"].get<std::vector<ordered_json>>(), view.width);
  }
  if (view.quiet) return text;
  return text + "\n" +
         legend({{"lower",
                  "the constant over the region is at least this: how much "
                  "larger a small change comes out at the tokens found, "
                  "recomputed in f64"},
                 {"upper",
                  "it is at most this, by the bound that is named; '-' where "
                  "none is proved"},
                 {"found from",
                  "the start whose ascent reached the largest norm; 'there': "
                  "the norm at this start"},
                 {"status",
                  "converged: the search ascended from every start and the "
                  "best ascent converged; 3 of 11 starts: --budget ended the "
                  "others; not-converged: --max-evaluations ended the best "
                  "ascent. lower holds in any case"}},
                view.width);
}

}  // namespace lipscope::cli
