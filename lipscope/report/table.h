#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lipscope {

/// A column of a table: the field of a record that stands in it, and its title.
struct Column {
  std::string field;
  std::string title;
};

/// A value as a person reads it: six digits, '-' for what is absent.
std::string cell(const nlohmann::ordered_json& value);

/// Records as lines of text, a heading over each column, all aligned to the
/// right. A field that a record lacks is absent.
std::string table(const std::vector<Column>& columns,
                  const std::vector<nlohmann::ordered_json>& records);

}  // namespace lipscope
