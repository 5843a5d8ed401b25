#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <vector>

namespace lipscope {

/// Records turned on their side, so that a hundred thousand of them are a few
/// megabytes of JSON: a column for each field, and in it every value once.
///
/// Numbers keep seven digits, those that only diagnose (seconds, residuals)
/// three; rounding is monotone, so what was below stays below. A field that a
/// record lacks is null in it.
class Columns {
 public:
  void add(const nlohmann::ordered_json& record);

  std::size_t size() const { return size_; }

  /// {"field": column, …}, in the order in which fields came up. A column is
  ///
  ///   {"all": value}                       the same in every record
  ///   {"each": [value, …]}                 one for each record
  ///   {"of": [value, …], "at": [i, …]}     the i-th of a list, for each record
  std::string json() const;

 private:
  // values as JSON, each once, and for each record which one
  struct Column {
    std::vector<std::string> values;
    std::unordered_map<std::string, std::uint32_t> places;
    std::vector<std::uint32_t> at;

    void add(const std::string& value);
  };

  std::size_t size_ = 0;
  std::vector<std::string> fields_;
  std::map<std::string, Column> columns_;
};

/// A value as JSON, numbers to so many digits; bytes that are not UTF-8 become
/// replacement characters. Nested more than `deepest` deep it is no record's.
std::string compact_json(const nlohmann::ordered_json& value, int digits = 7,
                         int deepest = 64);

}  // namespace lipscope
