#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace lipscope::audit {

/// What is said of the length of tokens: none is longer than a number, none is
/// longer than the norm layer ahead of the attention allows, or nothing.
class Radius {
 public:
  static Radius number(double value);  ///< finite and above 0
  static Radius norm_layer();
  static Radius everywhere();

  bool is_number() const { return kind_ == Kind::number; }
  bool is_norm_layer() const { return kind_ == Kind::norm_layer; }
  bool is_everywhere() const { return kind_ == Kind::everywhere; }
  double value() const { return value_; }  ///< of a number

  bool operator==(const Radius&) const = default;

 private:
  enum class Kind { number, norm_layer, everywhere };
  Radius(Kind kind, double value) : kind_(kind), value_(value) {}

  Kind kind_;
  double value_;
};

std::string name_of(const Radius& radius);  ///< "2.5", "ln" or "everywhere"

/// The same three. InputError, beginning with `where`, for other words.
Radius parse_radius(const std::string& word, const std::string& where);

/// For the key of a record: the number, or the word.
nlohmann::ordered_json to_json(const Radius& radius);

}  // namespace lipscope::audit
