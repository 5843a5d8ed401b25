#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lipscope {

/// A column of a table: the field of a record that stands in it, and its title.
/// Where there is no room for all columns, those of the highest rank go first;
/// rank 0 stays.
struct Column {
  std::string field;
  std::string title;
  int rank = 0;
};

/// A value as a person reads it: six digits, '-' for what is absent.
std::string cell(const nlohmann::ordered_json& value);

/// Records as lines of text, a heading over each column, all aligned to the
/// right. A field that a record lacks is absent. Numbers of fields that begin
/// with "lower" or "upper" are rounded down or up (digits.h). No line takes
/// more than `width` columns of a terminal (0: as many as there are) as long as
/// columns can be left out; a last line names those that were.
std::string table(const std::vector<Column>& columns,
                  const std::vector<nlohmann::ordered_json>& records,
                  std::size_t width = 0);

}  // namespace lipscope
