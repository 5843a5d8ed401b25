#pragma once

#include <string>

namespace lipscope {

/// The inputs that a bound speaks of: one of them, all sequences whose tokens
/// are in a ball, or all sequences.
class InputSet {
 public:
  static InputSet one();
  static InputSet ball(double radius);
  /// What a norm layer lets through, which is in a ball of this radius.
  static InputSet after_norm_layer(double radius);
  static InputSet everywhere();

  bool is_one() const { return kind_ == Kind::one; }
  bool is_everywhere() const { return kind_ == Kind::everywhere; }

  bool operator==(const InputSet&) const = default;
  /// "at this input", "ball of radius 3", "ball of radius 3, after the norm
  /// layer", "everywhere".
  friend std::string name_of(const InputSet& set);

 private:
  enum class Kind { one, ball, after_norm_layer, everywhere };
  InputSet(Kind kind, double radius) : kind_(kind), radius_(radius) {}

  Kind kind_;
  double radius_;  // of a ball, otherwise 0
};

std::string name_of(const InputSet& set);

}  // namespace lipscope
