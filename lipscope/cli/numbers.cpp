#include "lipscope/cli/numbers.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "lipscope/core/number_text.h"

namespace lipscope::cli {
namespace {

// 1073741824 as 2^30
std::string shown(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  if (value >= (1 << 20) && std::has_single_bit(bits))
    return fmt::format("2^{}", std::countr_zero(bits));
  return std::to_string(value);
}

// The text is put as the number is understood: the parser of the command line
// would take 010 for eight.
template <class Parse, class Fits>
CLI::Validator validator(Parse parse, Fits fits, const std::string& expected,
                         const std::string& in_help) {
  return {[=](std::string& text) {
            const auto value = parse(text);
            if (!value || !fits(*value))
              return fmt::format("'{}' was given, expected {}", text, expected);
            text = fmt::format("{}", *value);
            return std::string();
          },
          in_help};
}

}  // namespace

CLI::Validator whole_number(std::int64_t least, std::int64_t most) {
  const std::string range = fmt::format("{} to {}", shown(least), shown(most));
  return validator(
      whole_number_in,
      [=](std::int64_t value) { return value >= least && value <= most; },
      "a whole number from " + range, range);
}

CLI::Validator seed_number() {
  return validator(
      natural_number_in, [](std::uint64_t) { return true; },
      "a whole number from 0 to 2^64 - 1", "");
}

CLI::Validator positive_number() {
  return validator(
      finite_number_in, [](double value) { return value > 0; },
      "a finite number above 0", "above 0");
}

CLI::Validator number_not_negative() {
  return validator(
      finite_number_in, [](double value) { return value >= 0; },
      "a finite number, 0 or above", "0 or above");
}

CLI::Validator number_between(double least, double most) {
  const std::string range = fmt::format("{} to {}", least, most);
  return validator(
      finite_number_in,
      [=](double value) { return value >= least && value <= most; },
      "a number from " + range, range);
}

CLI::Validator number_or(const std::string& word, CLI::Validator number) {
  const std::string in_help = number.get_description();
  return {[=](std::string& text) {
            if (text == word) return std::string();
            const std::string wrong = number(text);
            return wrong.empty() ? wrong : wrong + ", or " + word;
          },
          in_help.empty() ? in_help : in_help + ", " + word};
}

CLI::Validator byte_size() {
  const auto bytes = [](std::string_view text) -> std::optional<std::uint64_t> {
    const std::size_t digits = text.find_first_not_of("0123456789.");
    const std::optional<double> number =
        finite_number_in(text.substr(0, digits));
    std::string_view unit = digits == text.npos ? "" : text.substr(digits);
    int power = 0;
    constexpr std::string_view prefixes = "KMGT";
    if (!unit.empty()) {
      const char prefix = unit[0] == 'k' ? 'K' : unit[0];
      if (const std::size_t at = prefixes.find(prefix); at != prefixes.npos) {
        power = static_cast<int>(at) + 1;
        unit.remove_prefix(1);
      }
    }
    if (!unit.empty() && unit != "B" && !(unit == "iB" && power > 0))
      return std::nullopt;
    if (!number) return std::nullopt;
    const double size = std::ldexp(*number, 10 * power);
    if (!(size >= 1 && size < 0x1p63)) return std::nullopt;
    return static_cast<std::uint64_t>(size);
  };
  return validator(
      bytes, [](std::uint64_t) { return true; },
      "a number of bytes from 1 on, as 500M or 2G", "");
}

CLI::Validator not_empty() {
  return {[](std::string& text) {
            return text.empty() ? std::string("it is empty") : std::string();
          },
          ""};
}

}  // namespace lipscope::cli
