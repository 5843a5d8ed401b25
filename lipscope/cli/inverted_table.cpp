#include "lipscope/cli/inverted_table.h"

#include <fmt/format.h>

#include "lipscope/report/table.h"
#include "lipscope/report/wrap.h"

namespace lipscope::cli {

using nlohmann::ordered_json;

std::string inverted_table(const std::vector<ordered_json>& records,
                           const View& view) {
  if (records.empty()) return "";
  const ordered_json& first = records.front();
  std::string text = fmt::format(
      "{}: inverse of x + {} f(x){}, f of kind {}, mask {}, norm {}\n\n",
      cell(first["model"]), cell(first["parameters"]["scale"]),
      first["parameters"]["depth"] == 1
          ? ""
          : fmt::format(" {} times", cell(first["parameters"]["depth"])),
      cell(first["kind"]), cell(first["mask"]), cell(first["norm"]));

  std::vector<ordered_json> lines, volumes;
  for (const ordered_json& r : records) {
    lines.push_back(r);
    lines.back().update(r["details"]);
    if (!r["details"].contains("log_det")) continue;
    volumes.push_back(r);
    volumes.back().update(r["details"]["log_det"]);
  }
  std::vector<Column> place;
  if (!first["layer"].is_null()) place.push_back({"layer", "layer"});
  place.insert(place.end(), {{"n", "n"}, {"sample", "sample"}});
  std::vector<Column> columns = place;
  columns.insert(columns.end(), {{"steps", "iterations"},
                                 {"a_priori", "enough", 1},
                                 {"lower", "error"},
                                 {"upper", "bound"},
                                 {"residual", "residual", 4},
                                 {"worst_ratio", "ratio", 3},
                                 {"contraction", "q", 2},
                                 {"outcome", "status"},
                                 {"seconds", "seconds", 5}});
  text += table(columns, lines, view.width);
  if (lines.front().contains("curve"))
    text += "\nFrom iteration to iteration, the first of them\n\n" +
            table({{"iteration", "iteration"},
                   {"step", "step"},
                   {"error", "error"},
                   {"bound", "bound"}},
                  lines.front()["curve"].get<std::vector<ordered_json>>(),
                  view.width);
  if (!volumes.empty()) {
    columns = place;
    columns.insert(columns.end(), {{"value", "log det"},
                                   {"error_bar", "+-"},
                                   {"truncation", "cut off"},
                                   {"terms", "terms"},
                                   {"probes", "probes"},
                                   {"dense", "dense"}});
    text += "\nLogarithm of the volume's change\n\n" +
            table(columns, volumes, view.width);
  }
  if (view.quiet) return text;
  std::vector<Meaning> meanings = {
      {"enough",
       "this number of iterations is enough, known after the first step; '-' "
       "where nothing is proved"},
      {"error", "|X found - X|, measured where X is known"},
      {"bound", "it is at most this: (q step + rounding)/(1 - q)"},
      {"residual", "|g(X found) - Y|, measured"},
      {"ratio",
       "the largest step over the one before it, above rounding; at most q if "
       "there is a q, the contraction that is proved"},
      {"status",
       "diverged: the steps grew for ever; not-converged: neither that nor at "
       "rest"}};
  if (!volumes.empty())
    meanings.push_back(
        {"+-",
         "error bar of the random signs at 95 %; cut off: a bound on the rest "
         "of the series; dense: by LU, where n d is at most 512"});
  return text + "\n" + legend(meanings, view.width);
}

}  // namespace lipscope::cli
