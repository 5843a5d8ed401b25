#include "lipscope/cli/certified_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lipscope/report/median.h"
#include "lipscope/report/record_fields.h"
#include "lipscope/report/table.h"
#include "lipscope/report/wrap.h"

namespace lipscope::cli {

using nlohmann::ordered_json;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// log10 of both sides at each position, where something is known
struct Sides {
  std::vector<double> lower, upper;
  std::vector<bool> right;
};

Sides sides_of(const std::vector<ordered_json>& records) {
  Sides s;
  for (const ordered_json& r : records) {
    const ordered_json& details = inside(r, "details");
    s.lower.push_back(number_of(details, "lower_log10").value_or(-infinity));
    s.upper.push_back(number_of(r, "upper_log10").value_or(infinity));
    s.right.push_back(details.value("right", false));
  }
  return s;
}

std::string number(double log10) {
  if (std::isinf(log10)) return log10 < 0 ? "0" : "-";
  return log10 < -6 ? fmt::format("10^{:.2f}", log10)
                    : fmt::format("{:.5g}", std::pow(10.0, log10));
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(
      std::floor(share * static_cast<double>(values.size() - 1)))];
}

ordered_json quantile_row(const char* name, double lower, double upper) {
  return {{"share", name}, {"lower", number(lower)}, {"upper", number(upper)}};
}

std::string quantiles(const Sides& s) {
  const auto at = [&](const char* name, double share) {
    return quantile_row(name, quantile(s.lower, share),
                        quantile(s.upper, share));
  };
  const std::vector<ordered_json> rows = {
      at("least", 0.0), at("10 %", 0.1),
      quantile_row("median", median_log10(s.lower), median_log10(s.upper)),
      at("90 %", 0.9), at("most", 1.0)};
  return table(
      {{"share", "position"}, {"lower", "proved"}, {"upper", "attacked at"}},
      rows);
}

std::string shares(const Sides& s, const std::vector<double>& radii) {
  std::vector<ordered_json> rows;
  const auto size = static_cast<double>(s.lower.size());
  const auto percent = [&](Index count) {
    return fmt::format("{:.1f} %", 100.0 * static_cast<double>(count) / size);
  };
  const auto row = [&](double radius) {
    Index certified = 0, right = 0, attacked = 0;
    for (std::size_t i = 0; i < s.lower.size(); ++i) {
      const bool holds = radius == 0.0 || s.lower[i] >= std::log10(radius);
      certified += holds;
      right += holds && s.right[i];
      attacked += radius > 0.0 && s.upper[i] <= std::log10(radius);
    }
    rows.push_back({{"radius", radius},
                    {"certified", percent(certified)},
                    {"right", percent(right)},
                    {"attacked", percent(attacked)}});
  };
  row(0.0);
  for (const double radius : radii) row(radius);
  return table({{"radius", "radius"},
                {"certified", "certified"},
                {"right", "and right"},
                {"attacked", "attacked"}},
               rows);
}

}  // namespace

std::string certified_table(const std::vector<ordered_json>& records,
                            const std::vector<double>& radii,
                            const StackConstant& constant, const View& view) {
  if (records.empty()) return "";
  const ordered_json& first = records.front();
  const Sides sides = sides_of(records);
  std::string text = fmt::format(
      "{}: kind {}, mask causal, norm 2, from the input of layer 0 to the {}; "
      "{} positions of {}\n",
      cell(first["model"]), cell(first["kind"]),
      cell(text_of(inside(first, "parameters"), "to")), records.size(),
      cell(text_of(inside(first, "input"), "name")));
  text += constant.logits
              ? fmt::format(
                    "constant to the logits, everywhere, from above: "
                    "{}\n\n",
                    number(constant.logits->log10()))
              : fmt::format("no constant holds everywhere: {}\n\n",
                            constant.unbounded);
  text += quantiles(sides) + "\n" + shares(sides, radii);
  if (view.quiet) return text;
  text +=
      "\n" +
      legend({{"proved",
               "no change of the embeddings within this radius changes the "
               "prediction, however it is spread over the tokens; "
               "quantiles over the positions"},
              {"attacked at",
               "a change of this size does change it: found, and evaluated in "
               "f64"},
              {"certified",
               "share of the positions whose radius is at least this; 'and "
               "right': where the prediction is the next token of the text "
               "as well"},
              {"attacked",
               "share of the positions where a change of at most this size "
               "was found; of the rest nothing is known at this radius"}},
             view.width);
  if (first["lower"].is_null())
    text += "Nothing is proved of l2-untied attention: every radius is 0.\n";
  return text;
}

}  // namespace lipscope::cli
