#include "lipscope/text/json_section.h"

#include <fmt/format.h>

#include "lipscope/core/errors.h"
#include "lipscope/io/json_text.h"

namespace lipscope {

using nlohmann::json;

JsonSection::JsonSection(std::string place, const json& value)
    : place_(std::move(place)), value_(&value) {
  if (!value.is_object())
    throw InputError(
        fmt::format("{}: is {}, expected an object", place_, shown(value)));
}

const json& JsonSection::at(const char* key) const {
  static const json null;
  const auto found = value_->find(key);
  return found == value_->end() ? null : *found;
}

JsonSection JsonSection::section(const char* key) const {
  return JsonSection(fmt::format("{}: {}", place_, key), at(key));
}

std::vector<JsonSection> JsonSection::sections(const char* key) const {
  if (!at(key).is_array()) refuse(key, "a list");
  std::vector<JsonSection> all;
  for (const json& entry : at(key))
    all.emplace_back(fmt::format("{}: {}[{}]", place_, key, all.size()), entry);
  return all;
}

bool JsonSection::flag(const char* key, bool otherwise) const {
  return has(key) ? flag(key) : otherwise;
}

bool JsonSection::flag(const char* key) const {
  if (!at(key).is_boolean()) refuse(key, "true or false");
  return at(key).get<bool>();
}

std::string JsonSection::text(const char* key,
                              const std::string& otherwise) const {
  return has(key) ? text(key) : otherwise;
}

std::string JsonSection::text(const char* key) const {
  if (!at(key).is_string()) refuse(key, "a string");
  return at(key).get<std::string>();
}

void JsonSection::refuse(const char* key, std::string_view expected) const {
  throw InputError(fmt::format("{}: {} is {}, expected {}", place_, key,
                               shown(at(key)), expected));
}

void JsonSection::not_implemented(const char* key) const {
  throw InputError(fmt::format("{}: {} is {}, which is not implemented", place_,
                               key, shown(at(key))));
}

}  // namespace lipscope
