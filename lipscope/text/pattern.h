#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lipscope {

/// A piece of a text: what a pattern matched, or what stands between matches.
struct PatternSpan {
  std::size_t begin = 0, end = 0;
  bool matched = false;

  bool operator==(const PatternSpan&) const = default;
};

/// What a text is cut at, or what is replaced in it: a string, a regular
/// expression, or all characters of a kind.
class Pattern {
 public:
  /// A text, which must be UTF-8, cut into matches and what stands between
  /// them, end to end. Matches may be empty.
  std::vector<PatternSpan> spans(std::string_view text) const {
    return spans_(text);
  }

  /// Every occurrence of a string; an empty one has none.
  static Pattern of_string(std::string content);

  /// Every character for which this is true, each a match.
  static Pattern of_characters(std::function<bool(char32_t)> is_one);

  /// A regular expression as Hugging Face's tokenizers read it: in Oniguruma's
  /// syntax, with the character classes of Unicode 16. It is translated to
  /// PCRE2's, as far as the two can be made to agree; InputError, beginning
  /// with `place`, with the part that cannot.
  static Pattern of_regex(std::string_view place, std::string_view regex);

 private:
  using Spans = std::function<std::vector<PatternSpan>(std::string_view)>;
  explicit Pattern(Spans spans) : spans_(std::move(spans)) {}

  Spans spans_;
};

}  // namespace lipscope
