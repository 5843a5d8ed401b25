#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "lipscope/text/token.h"

namespace lipscope {

/// Bytes [begin, end) of the text that a user gave.
struct Source {
  std::size_t begin = 0, end = 0;
};

/// A text on its way to tokens, in UTF-8, of which every byte knows where in
/// the user's text it came from. What was put in has an empty source.
class SourcedText {
 public:
  SourcedText() = default;
  /// As the user wrote it, from byte `begin` of the user's text on.
  explicit SourcedText(std::string_view text, std::size_t begin = 0);

  const std::string& text() const { return text_; }
  bool empty() const { return text_.empty(); }
  /// Where what came first began; 0 for an empty text.
  std::size_t begin() const { return empty() ? 0 : sources_.front().begin; }

  /// The source of bytes [begin, end), which are not empty: from the leftmost
  /// to the rightmost. Characters may have changed places.
  Source source(std::size_t begin, std::size_t end) const;

  /// Bytes [begin, end) as a text of their own.
  SourcedText part(std::size_t begin, std::size_t end) const;

  void append(std::string_view bytes, Source from);
  void append(char32_t character, Source from);
  /// Bytes [begin, end) of another text.
  void append(const SourcedText& other, std::size_t begin, std::size_t end);
  /// Puts bytes before a text that is not empty.
  void prepend(std::string_view bytes);

 private:
  std::string text_;
  std::vector<Source> sources_;  // one for each byte
};

}  // namespace lipscope
