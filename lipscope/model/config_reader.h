#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "lipscope/core/matrix.h"
#include "lipscope/model/activation.h"

namespace lipscope {

/// More than any model has; what lies beyond is a mistake or an attack.
inline constexpr Index most_layers = 10'000;
inline constexpr Index most_wide = Index{1} << 20;
inline constexpr Index most_entries = Index{1} << 31;

/// A config.json, key by key. Every message is an InputError with the file, the
/// key and what stands there.
class ConfigReader {
 public:
  /// `where` begins the messages.
  ConfigReader(std::string_view text, std::string where);

  using Keys = std::vector<const char*>;

  /// The first of the keys that is there and not null; this reader must outlive
  /// the pointer.
  const nlohmann::json* find(const Keys& keys) const;
  const nlohmann::json* find(const char* key) const { return find(Keys{key}); }
  /// Whether one of them is there, and null.
  bool is_null(const Keys& keys) const;
  /// The same, refused where it is not there.
  const nlohmann::json& need(const char* key) const;

  /// From `least` to `most`.
  Index count(const Keys& keys, Index otherwise, Index most,
              Index least = 1) const;
  Index needed_count(const char* key, Index most) const;
  double positive(const Keys& keys, double otherwise) const;
  double positive_number(const char* key, const nlohmann::json& value) const;
  bool flag(const Keys& keys, bool otherwise) const;
  std::string text(const char* key, const char* otherwise) const;
  std::string needed_text(const char* key) const;
  Activation activation(const Keys& keys, Activation otherwise) const;

  /// A feature that is not done here, unless it is switched off.
  void refuse_if(const char* key, const char* what) const;
  void refuse_unless(const char* key, bool expected, const char* what) const;
  [[noreturn]] void refuse(const char* key, const nlohmann::json& value,
                           const std::string& why) const;

  const std::string& where() const { return where_; }

 private:
  std::string where_;
  nlohmann::json values_;
};

}  // namespace lipscope
