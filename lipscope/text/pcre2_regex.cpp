#include "lipscope/text/pcre2_regex.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "lipscope/core/errors.h"
#include "lipscope/io/json_text.h"
#include "lipscope/text/unicode_versions.h"

namespace lipscope {
namespace {

// Unicode's White_Space, as part of a class
constexpr std::string_view white_space =
    R"(\x09-\x0d\x20\x85\xa0\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029})"
    R"(\x{202f}\x{205f}\x{3000})";

// Reads the expression from left to right, and writes the other.
class Translation {
 public:
  Translation(std::string_view place, std::string_view regex)
      : place_(place), regex_(regex) {}

  std::string whole() {
    while (!at_end()) {
      const char c = next();
      if (c == '\\')
        out_ += escape();
      else if (c == '[')
        out_ += bracket();
      else if (c == '(')
        out_ += group();
      else if (c == '{' && !at_end() && peek() == ',')
        refuse("{,");
      else if (c == '}' && !at_end() && peek() == '+' && in_count_)
        refuse("}+");
      else
        out_ += c;
      if (c == '{') in_count_ = true;
      if (c == '}') in_count_ = false;
    }
    return std::move(out_);
  }

 private:
  bool at_end() const { return at_ == regex_.size(); }
  char peek() const { return regex_[at_]; }
  bool follows(std::string_view what) const {
    return regex_.substr(at_).starts_with(what);
  }
  char next() {
    if (at_end())
      throw InputError(fmt::format("{}: the regular expression {} ends early",
                                   place_, printable(regex_)));
    return regex_[at_++];
  }
  [[noreturn]] void refuse(std::string_view part) const {
    throw InputError(fmt::format(
        "{}: the regular expression {} has {} in it, which is not implemented",
        place_, printable(regex_), printable(part)));
  }

  // What follows a "(": only groups that both read alike.
  std::string group() {
    if (!at_end() && peek() == '*') refuse("(*");
    if (at_end() || peek() != '?') return "(";
    for (const std::string_view known :
         {"?:", "?=", "?!", "?<=", "?<!", "?>", "?i:"})
      if (follows(known)) {
        at_ += known.size();
        return fmt::format("({}", known);
      }
    // of the whole expression; within one the two disagree how far it reaches
    if (at_ == 1 && follows("?i)")) {
      at_ += 3;
      return "(?i)";
    }
    refuse(fmt::format("({}", regex_.substr(at_, 3)));
  }

  // The characters of an escape, its backslash read, as part of a class, or
  // all but these
  struct Set {
    std::string content;
    bool negated = false;
  };

  Set escaped_set() {
    const char c = next();
    switch (c) {
      case 's':
      case 'S':
        return {std::string(white_space), c == 'S'};
      case 'd':
      case 'D':
        return {property("Nd"), c == 'D'};
      case 'p':
      case 'P': {
        if (next() != '{') refuse(fmt::format("\\{}", c));
        const std::size_t close = regex_.find('}', at_);
        if (close == regex_.npos) refuse(fmt::format("\\{}{{", c));
        std::string_view name = regex_.substr(at_, close - at_);
        at_ = close + 1;
        const bool hat = name.starts_with('^');
        if (hat) name.remove_prefix(1);
        return {property(name), hat != (c == 'P')};
      }
      case 'u': {
        std::string digits;
        while (digits.size() < 4) digits += next();
        return {number(digits), false};
      }
      case 'x': {
        std::string digits;
        if (!at_end() && peek() == '{') {
          next();
          while (!at_end() && peek() != '}') digits += next();
          if (next() != '}') refuse("\\x{");
        } else {
          while (digits.size() < 2) digits += next();
        }
        return {number(digits), false};
      }
      case 'r':
      case 'n':
      case 't':
      case 'f':
        return {{'\\', c}, false};
      case 'v':
        return {"\\x0b", false};
      default:
        if (std::ispunct(static_cast<unsigned char>(c)) || c == ' ')
          return {{'\\', c}, false};
        refuse(fmt::format("\\{}", c));
    }
  }

  // A character by its number in hexadecimal digits
  std::string number(const std::string& digits) const {
    const bool fine =
        !digits.empty() && digits.size() <= 6 &&
        std::all_of(digits.begin(), digits.end(),
                    [](unsigned char d) { return std::isxdigit(d) != 0; });
    if (!fine) refuse(digits);
    return fmt::format("\\x{{{}}}", digits);
  }

  // A general category, such as L or Lu, or a script
  std::string property(std::string_view name) const {
    std::string content = fmt::format("\\p{{{}}}", name);
    if (name.size() > 2) {
      // a script gained no character that anyone cuts a text at, except for Han
      if (name == "Han")
        return content + "\\x{2ebf0}-\\x{2ee5d}\\x{31350}-\\x{323af}";
      if (name != "Hiragana" && name != "Katakana" && name != "Hangul" &&
          name != "Latin" && name != "Cyrillic" && name != "Greek" &&
          name != "Thai" && name != "Arabic" && name != "Hebrew")
        refuse(content);
      return content;
    }
    for (const NewCharacters& range : new_characters())
      if (std::string_view(range.category).starts_with(name))
        content += fmt::format("\\x{{{:x}}}-\\x{{{:x}}}",
                               static_cast<std::uint32_t>(range.first),
                               static_cast<std::uint32_t>(range.last));
    return content;
  }

  // An escape outside a class
  std::string escape() {
    // zero-width, and alike in both
    for (const std::string_view known : {"A", "z", "Z"})
      if (follows(known)) {
        ++at_;
        return fmt::format("\\{}", known);
      }
    const std::size_t begin = at_;
    const Set set = escaped_set();
    const bool one = set.content.size() == 2 && !set.negated;
    if (one) return set.content;
    const char c = regex_[begin];
    if (c == 'u' || c == 'x' || c == 'v') return set.content;
    return fmt::format("[{}{}]", set.negated ? "^" : "", set.content);
  }

  // A class, its "[" read. Classes within are taken into it.
  std::string bracket() {
    std::string out = "[";
    if (!at_end() && peek() == '^') out += next();
    return out + class_content() + "]";
  }

  std::string class_content() {
    std::string out;
    const std::size_t begin = at_;
    while (true) {
      if (follows("&&")) refuse("&&");
      if (follows("[:")) refuse("[:");
      const std::size_t here = at_;
      const char c = next();
      if (c == ']') {
        // Oniguruma takes a first "]" for a character
        if (here != begin) return out;
        refuse("[]");
      }
      if (c == '\\') {
        const Set set = escaped_set();
        if (set.negated) refuse(regex_.substr(here, at_ - here));
        out += set.content;
      } else if (c == '[') {
        if (!at_end() && peek() == '^') refuse("[[^");
        out += class_content();
      } else {
        out += c;
      }
    }
  }

  std::string_view place_, regex_;
  std::size_t at_ = 0;
  bool in_count_ = false;
  std::string out_;
};

}  // namespace

std::string pcre2_regex(std::string_view place, std::string_view regex) {
  return Translation(place, regex).whole();
}

}  // namespace lipscope
