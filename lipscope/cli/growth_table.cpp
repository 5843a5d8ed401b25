#include "lipscope/cli/growth_table.h"

#include <fmt/format.h>

#include "lipscope/report/table.h"
#include "lipscope/report/wrap.h"

namespace lipscope::cli {

using nlohmann::ordered_json;

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
