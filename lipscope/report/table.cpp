#include "lipscope/report/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "lipscope/core/visible_text.h"
#include "lipscope/report/digits.h"
#include "lipscope/report/wrap.h"

namespace lipscope {

using nlohmann::ordered_json;

namespace {

// What stands in a field, by the side of which its numbers speak: a field is
// called for it ("lower", "upper_whp").
std::string cell_of(const std::string& field, const ordered_json& value) {
  if (!value.is_number_float()) return cell(value);
  if (field.starts_with("upper")) return six_digits_above(value.get<double>());
  if (field.starts_with("lower")) return six_digits_below(value.get<double>());
  return cell(value);
}

// a column with its title on top of its cells
struct Strip {
  std::string title;
  int rank = 0;
  std::vector<std::string> cells;
  std::size_t width = 0;
};

Strip strip_of(const Column& column, const std::vector<ordered_json>& records) {
  Strip strip{column.title, column.rank, {column.title}};
  for (const ordered_json& record : records) {
    const auto at = record.find(column.field);
    strip.cells.push_back(at == record.end() ? "-"
                                             : cell_of(column.field, *at));
  }
  for (const std::string& text : strip.cells)
    strip.width = std::max(strip.width, display_width(text));
  return strip;
}

constexpr std::size_t gap = 2;

// the titles of those that were taken out, in the order in which they stood
std::vector<std::string> make_room(std::vector<Strip>& strips,
                                   std::size_t width) {
  std::vector<Strip> all = strips;
  const auto total = [&] {
    std::size_t sum = 0;
    for (const Strip& s : strips) sum += s.width + gap;
    return sum - std::min(sum, gap);
  };
  while (width > 0 && total() > width) {
    // of the highest rank the one that stands last
    const auto out = std::max_element(
        strips.rbegin(), strips.rend(),
        [](const Strip& a, const Strip& b) { return a.rank < b.rank; });
    if (out == strips.rend() || out->rank == 0) break;
    strips.erase(std::next(out).base());
  }
  std::vector<std::string> left_out;
  std::size_t kept = 0;
  for (const Strip& s : all) {
    if (kept < strips.size() && strips[kept].title == s.title &&
        strips[kept].rank == s.rank)
      ++kept;
    else
      left_out.push_back(s.title);
  }
  return left_out;
}

}  // namespace

std::string cell(const ordered_json& value) {
  if (value.is_null()) return "-";
  if (value.is_number_float()) return six_digits(value.get<double>());
  if (value.is_string()) return visible_line(value.get<std::string>());
  return visible_line(
      value.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
}

std::string table(const std::vector<Column>& columns,
                  const std::vector<ordered_json>& records, std::size_t width) {
  std::vector<Strip> strips;
  for (const Column& column : columns)
    strips.push_back(strip_of(column, records));
  const std::vector<std::string> left_out = make_room(strips, width);

  std::string text;
  for (std::size_t row = 0; row <= records.size(); ++row) {
    std::string line;
    for (const Strip& strip : strips) {
      if (!line.empty()) line += std::string(gap, ' ');
      const std::string& content = strip.cells[row];
      line += std::string(strip.width - display_width(content), ' ') + content;
    }
    text += line + '\n';
  }
  if (!left_out.empty())
    text += wrapped(fmt::format("(not shown: {}; --wide shows all columns)",
                                fmt::join(left_out, ", ")),
                    width, 1) +
            '\n';
  return text;
}

}  // namespace lipscope
