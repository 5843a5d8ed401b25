#include "lipscope/io/json_fields.h"

namespace lipscope {

using nlohmann::ordered_json;

std::optional<double> number_in(const ordered_json& line, const char* field) {
  const auto at = line.find(field);
  if (at == line.end() || !at->is_number()) return std::nullopt;
  return at->get<double>();
}

std::optional<Index> whole_number_in(const ordered_json& line,
                                     const char* field) {
  const auto at = line.find(field);
  if (at == line.end() || !at->is_number_integer()) return std::nullopt;
  return at->get<Index>();
}

std::string text_in(const ordered_json& line, const char* field,
                    const char* otherwise) {
  const auto at = line.find(field);
  return at != line.end() && at->is_string() ? at->get<std::string>()
                                             : std::string(otherwise);
}

}  // namespace lipscope
