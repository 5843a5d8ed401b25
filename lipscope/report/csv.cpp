#include "lipscope/report/csv.h"

#include <map>

namespace lipscope {

using nlohmann::ordered_json;

namespace {

using Fields = std::vector<std::pair<std::string, ordered_json>>;

// the scalars of a record, and of what is in it
void collect(const ordered_json& value, const std::string& name,
             Fields& fields) {
  if (value.is_array()) return;
  if (!value.is_object()) {
    fields.emplace_back(name, value);
    return;
  }
  for (const auto& [key, inner] : value.items())
    collect(inner, name.empty() ? key : name + "." + key, fields);
}

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + '"';
}

std::string value_of(const ordered_json& value) {
  if (value.is_null()) return "";
  return quoted(value.is_string() ? value.get<std::string>() : value.dump());
}

std::string line_of(const std::vector<std::string>& cells) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i)
    line += (i > 0 ? "," : "") + cells[i];
  return line + "\r\n";
}

}  // namespace

std::string csv(const std::vector<ordered_json>& records) {
  std::map<std::string, std::size_t> place;
  std::vector<std::string> header;
  std::vector<Fields> rows;
  for (const ordered_json& record : records) {
    collect(record, "", rows.emplace_back());
    for (const auto& [name, value] : rows.back())
      if (place.emplace(name, header.size()).second)
        header.push_back(quoted(name));
  }
  if (rows.empty()) return "";
  std::string text = line_of(header);
  for (const Fields& row : rows) {
    std::vector<std::string> cells(header.size());
    for (const auto& [name, value] : row) cells[place[name]] = value_of(value);
    text += line_of(cells);
  }
  return text;
}

}  // namespace lipscope
