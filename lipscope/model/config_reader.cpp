#include "lipscope/model/config_reader.h"

#include <cmath>

#include "lipscope/core/errors.h"
#include "lipscope/io/json_text.h"

namespace lipscope {

using nlohmann::json;

ConfigReader::ConfigReader(std::string_view text, std::string where)
    : where_(std::move(where)) {
  values_ = parse_json(where_, text);
  if (!values_.is_object())
    throw InputError(
        fmt::format("{}: expected a JSON object at the top", where_));
}

bool ConfigReader::is_null(const Keys& keys) const {
  for (const char* key : keys) {
    const auto found = values_.find(key);
    if (found != values_.end()) return found->is_null();
  }
  return false;
}

const json* ConfigReader::find(const Keys& keys) const {
  for (const char* key : keys) {
    const auto found = values_.find(key);
    if (found != values_.end() && !found->is_null()) return &*found;
  }
  return nullptr;
}

const json& ConfigReader::need(const char* key) const {
  const json* value = find(key);
  if (value == nullptr) throw InputError(fmt::format("{}: no {}", where_, key));
  return *value;
}

Index ConfigReader::count(const Keys& keys, Index otherwise, Index most,
                          Index least) const {
  const json* value = find(keys);
  if (value == nullptr) return otherwise;
  if (!value->is_number_integer())
    refuse(keys.front(), *value, "expected a whole number");
  // unsigned numbers beyond int64 would wrap around
  const bool fits =
      value->is_number_unsigned()
          ? value->get<std::uint64_t>() <= static_cast<std::uint64_t>(most)
          : value->get<std::int64_t>() <= most;
  if (!fits || value->get<std::int64_t>() < least)
    refuse(keys.front(), *value, fmt::format("expected {} to {}", least, most));
  return value->get<Index>();
}

Index ConfigReader::needed_count(const char* key, Index most) const {
  need(key);
  return count({key}, 1, most);
}

double ConfigReader::positive(const Keys& keys, double otherwise) const {
  const json* value = find(keys);
  if (value == nullptr) return otherwise;
  return positive_number(keys.front(), *value);
}

double ConfigReader::positive_number(const char* key, const json& value) const {
  if (!value.is_number() || !std::isfinite(value.get<double>()) ||
      value.get<double>() <= 0)
    refuse(key, value, "expected a positive number");
  return value.get<double>();
}

bool ConfigReader::flag(const Keys& keys, bool otherwise) const {
  const json* value = find(keys);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean())
    refuse(keys.front(), *value, "expected true or false");
  return value->get<bool>();
}

std::string ConfigReader::text(const char* key, const char* otherwise) const {
  const json* value = find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_string()) refuse(key, *value, "expected a string");
  return value->get<std::string>();
}

std::string ConfigReader::needed_text(const char* key) const {
  need(key);
  return text(key, "");
}

Activation ConfigReader::activation(const Keys& keys,
                                    Activation otherwise) const {
  const json* value = find(keys);
  if (value == nullptr) return otherwise;
  if (!value->is_string()) refuse(keys.front(), *value, "expected a string");
  const std::string name = value->get<std::string>();
  if (name == "gelu") return Activation::gelu;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast")
    return Activation::gelu_tanh;
  if (name == "relu") return Activation::relu;
  if (name == "silu" || name == "swish") return Activation::silu;
  if (name == "max_min") return Activation::max_min;
  refuse(keys.front(), *value,
         "gelu, gelu_new, gelu_pytorch_tanh, gelu_fast, relu, silu and max_min "
         "can be read");
}

void ConfigReader::refuse_if(const char* key, const char* what) const {
  const json* value = find(key);
  if (value == nullptr || (value->is_boolean() && !value->get<bool>())) return;
  refuse(key, *value, fmt::format("{} is not supported", what));
}

void ConfigReader::refuse_unless(const char* key, bool expected,
                                 const char* what) const {
  if (flag({key}, expected) != expected)
    refuse(key, *find(key), fmt::format("{} is not supported", what));
}

void ConfigReader::refuse(const char* key, const json& value,
                          const std::string& why) const {
  throw InputError(
      fmt::format("{}: {} is {}; {}", where_, key, shown(value), why));
}

}  // namespace lipscope
