#include "lipscope/report/digits.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

namespace lipscope {
namespace {

// The number that six digits show, in steps of its last digit.
struct Shown {
  double number = 0.0, step = 0.0;
};

Shown shown(double value) {
  const std::string text = fmt::format("{:.5e}", value);
  const int exponent = std::stoi(text.substr(text.find('e') + 1));
  return {std::stod(text), std::pow(10.0, exponent - 5)};
}

constexpr double counts = 1e-3;  // of a step

}  // namespace

std::string six_digits(double value) { return fmt::format("{:.6g}", value); }

std::string six_digits_above(double value) {
  if (value == 0.0 || !std::isfinite(value)) return six_digits(value);
  const Shown s = shown(value);
  const bool is_above = s.number >= value - counts * s.step;
  return six_digits(is_above ? s.number : s.number + s.step);
}

std::string six_digits_below(double value) {
  const std::string above = six_digits_above(-value);
  return above.front() == '-' ? above.substr(1)
         : value == 0.0       ? six_digits(value)
                              : "-" + above;
}

}  // namespace lipscope
