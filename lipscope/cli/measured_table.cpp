#include "lipscope/cli/measured_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "lipscope/core/matrix.h"
#include "lipscope/report/median.h"
#include "lipscope/report/table.h"
#include "lipscope/report/wrap.h"

namespace lipscope::cli {

using nlohmann::ordered_json;

namespace {

// one line for all samples of a length
std::vector<ordered_json> by_length(const std::vector<ordered_json>& records) {
  std::map<std::tuple<std::string, std::string, Index>, std::vector<double>>
      values, above;
  for (const ordered_json& r : records) {
    const std::tuple key{r["layer"].dump(), r["head"].dump(),
                         r["n"].get<Index>()};
    values[key].push_back(r["lower"].get<double>());
    above[key].push_back(r["upper"].is_null() ? INFINITY
                                              : r["upper"].get<double>());
  }
  std::vector<ordered_json> lines;
  std::set<std::tuple<std::string, std::string, Index>> seen;
  for (const ordered_json& r : records) {
    const std::tuple key{r["layer"].dump(), r["head"].dump(),
                         r["n"].get<Index>()};
    if (!seen.insert(key).second) continue;
    const std::vector<double>& lower = values[key];
    const auto [least, most] = std::minmax_element(lower.begin(), lower.end());
    const double median_upper = median(above[key]);
    lines.push_back(
        {{"layer", r["layer"]},
         {"head", r["head"]},
         {"n", r["n"]},
         {"samples", lower.size()},
         {"least", *least},
         {"median", median(lower)},
         {"most", *most},
         {"upper", std::isfinite(median_upper) ? ordered_json(median_upper)
                                               : ordered_json(nullptr)},
         {"upper_by", r["upper_by"]}});
  }
  return lines;
}

}  // namespace

std::string measured_table(const std::vector<ordered_json>& records,
                           const View& view) {
  if (records.empty()) return "";
  const ordered_json& first = records.front();
  const bool layers = !first["layer"].is_null();
  std::string text =
      fmt::format("{}: map {}, kind {}, mask {}, norm {}, at each input\n\n",
                  cell(first["model"]), cell(first["map"]), cell(first["kind"]),
                  cell(first["mask"]), cell(first["norm"]));

  std::vector<Column> columns;
  if (layers) columns.push_back({"layer", "layer"});
  constexpr std::size_t most_rows = 100;
  if (records.size() <= most_rows) {
    columns.insert(columns.end(), {{"head", "head"},
                                   {"n", "n"},
                                   {"sample", "sample", 2},
                                   {"radius_max", "max |x|", 5},
                                   {"lower", "lower"},
                                   {"upper_whp", "upper (whp)"},
                                   {"upper", "upper"},
                                   {"upper_by", "proved by", 1},
                                   {"lower_by", "found by", 7},
                                   {"residual", "residual", 6},
                                   {"steps", "steps", 4},
                                   {"status", "status", 3},
                                   {"seconds", "seconds", 8}});
    text += table(columns, records, view.width);
  } else {
    columns.insert(columns.end(), {{"head", "head"},
                                   {"n", "n"},
                                   {"samples", "samples", 1},
                                   {"least", "least lower", 2},
                                   {"median", "median"},
                                   {"most", "most"},
                                   {"upper", "median upper"},
                                   {"upper_by", "proved by", 3}});
    text += table(columns, by_length(records), view.width);
    const auto converged = std::count_if(
        records.begin(), records.end(),
        [](const ordered_json& r) { return r["status"] == "converged"; });
    text += fmt::format(
        "\n{} measurements, {} of them converged; --out FILE.jsonl keeps each "
        "with its evidence\n",
        records.size(), converged);
  }

  if (view.quiet) return text;
  std::vector<Meaning> meanings = {
      {"lower",
       "how many times larger a small change of the input comes out, for the "
       "worst direction found; recomputed in f64, so the true constant is at "
       "least this"}};
  if (!first["delta"].is_null() && records.size() <= most_rows)
    meanings.push_back(
        {"upper (whp)",
         fmt::format("the true constant is at most this, but for a chance of "
                     "{:.0e} over the random start; '-' where nothing can be "
                     "said (--enclose 1.05 goes on until something can)",
                     first["delta"].get<double>())});
  meanings.push_back(
      {"upper",
       "the true constant is at most this, for certain: by a decomposition "
       "(dense-gram, row-sweep) or by the bound that is named "
       "(docs/bounds.md); "
       "'-' where nothing is proved"});
  return text + "\n" + legend(meanings, view.width);
}

std::string growth_table(const std::vector<ordered_json>& fits,
                         const View& view) {
  if (fits.empty()) return "";
  std::vector<Column> columns;
  if (!fits.front()["layer"].is_null()) columns.push_back({"layer", "layer"});
  columns.insert(columns.end(), {{"head", "head"},
                                 {"points", "points", 3},
                                 {"exponent", "exponent"},
                                 {"exponent_low", "low"},
                                 {"exponent_high", "high"},
                                 {"constant", "constant"},
                                 {"r_squared", "r squared", 2},
                                 {"radius_correlation", "with radius", 1}});
  std::string text =
      "\nGrowth of 'lower' at these inputs with the length n, as constant * "
      "n^exponent\n\n" +
      table(columns, fits, view.width);
  if (view.quiet) return text;
  return text + "\n" +
         legend({{"low, high",
                  fmt::format("hold the exponent with confidence {}, if "
                              "residuals are independent",
                              fits.front()["confidence"].get<double>())},
                 {"with radius",
                  "correlation of the constant with the sequence's radius, "
                  "both as logarithms"}},
                view.width);
}

}  // namespace lipscope::cli
