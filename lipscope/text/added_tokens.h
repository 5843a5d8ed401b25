#pragma once

#include <array>
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lipscope/text/token.h"

namespace lipscope {

/// A token that is looked for in the text ahead of everything else, as Hugging
/// Face's tokenizers do: [CLS], <|endoftext|>, what a user added.
struct AddedToken {
  std::string content;
  TokenId id = 0;
  bool single_word = false;  ///< not within or beside a word
  bool lstrip = false;       ///< takes the white space before it
  bool rstrip = false;       ///< takes the white space after it
  /// Looked for in the normalised text, in its own normalised form.
  bool normalized = false;
};

/// A piece of a text: an added token, or what stands between them.
struct TextSpan {
  std::optional<TokenId> id;
  std::size_t begin = 0, end = 0;

  bool operator==(const TextSpan&) const = default;
};

/// Added tokens, to be found in texts.
class AddedTokens {
 public:
  AddedTokens() = default;
  /// Those without content are left out.
  explicit AddedTokens(std::vector<AddedToken> tokens);

  /// The text, which must be UTF-8, cut at the added tokens: spans that lie end
  /// to end and are not empty. From left to right, of those that begin at one
  /// place the longest.
  std::vector<TextSpan> split(std::string_view text) const;

  bool empty() const { return tokens_.empty(); }

 private:
  const AddedToken* longest_at(std::string_view text, std::size_t at) const;

  std::vector<AddedToken> tokens_;  // longer ones first
  // by their first byte, numbers of tokens_
  std::array<std::vector<std::size_t>, 256> by_first_;
};

/// The list `added_tokens` of a tokenizer.json; null is an empty one. A token
/// that does not say whether it is normalised is, unless it is special.
/// InputError, beginning with `place`, for what is malformed.
std::vector<AddedToken> parse_added_tokens(std::string_view place,
                                           const nlohmann::json& list);

}  // namespace lipscope
