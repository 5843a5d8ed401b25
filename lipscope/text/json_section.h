#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace lipscope {

/// An object of a JSON file, and what to call it in a message. All refusals are
/// InputErrors that begin with its place.
class JsonSection {
 public:
  /// InputError unless the value, which must outlive this, is an object.
  JsonSection(std::string place, const nlohmann::json& value);

  const std::string& place() const { return place_; }

  /// null where there is no such key
  const nlohmann::json& at(const char* key) const;
  bool has(const char* key) const { return !at(key).is_null(); }

  JsonSection section(const char* key) const;
  /// A list of objects.
  std::vector<JsonSection> sections(const char* key) const;

  /// The value of a key, or `otherwise` where there is none.
  bool flag(const char* key, bool otherwise) const;
  std::string text(const char* key, const std::string& otherwise) const;

  /// The value of a key that must be there.
  bool flag(const char* key) const;
  std::string text(const char* key) const;

  [[noreturn]] void refuse(const char* key, std::string_view expected) const;
  /// Of a value that has a meaning, but not here.
  [[noreturn]] void not_implemented(const char* key) const;

 private:
  std::string place_;
  const nlohmann::json* value_;
};

}  // namespace lipscope
