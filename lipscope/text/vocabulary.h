#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lipscope/text/token.h"

namespace lipscope {

/// The characters that a model knows, in the order of their codes: each is a
/// token.
class Vocabulary {
 public:
  /// Those of a text in UTF-8.
  static Vocabulary of(std::string_view text);
  /// Those of a list, which must be in order and different.
  explicit Vocabulary(std::vector<char32_t> characters);

  std::ptrdiff_t size() const {
    return static_cast<std::ptrdiff_t>(characters_.size());
  }
  const std::vector<char32_t>& characters() const { return characters_; }

  /// The characters of a text with the bytes they stand at. InputError, with
  /// the byte, for text that is not UTF-8 and for a character that is not
  /// known.
  std::vector<Token> encode(std::string_view text) const;
  /// Their numbers alone; `where` begins the message.
  std::vector<TokenId> encode(std::string_view text,
                              const std::string& where) const;
  std::string decode(std::span<const TokenId> numbers) const;

  /// The characters in UTF-8.
  const std::vector<std::string>& pieces() const { return pieces_; }

 private:
  std::vector<char32_t> characters_;
  std::vector<std::string> pieces_;
};

/// The "characters" of the config.json of a model that lipscope trained, a list
/// of code points. InputError, beginning with `place`, for anything else.
Vocabulary parse_vocabulary(std::string_view place, std::string_view config);

}  // namespace lipscope
