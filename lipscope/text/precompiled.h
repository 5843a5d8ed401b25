#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lipscope/text/sourced_text.h"

namespace lipscope {

/// The table by which a SentencePiece model normalises a text, as a
/// tokenizer.json keeps it (precompiled_charsmap): in base64
///
///   uint32     the size of a double-array trie in bytes
///   uint32...  the trie: from characters to places in what follows
///   bytes      what to write instead, each ended by a zero
class Precompiled {
 public:
  /// InputError, beginning with `place`, for what is not such a table.
  Precompiled(std::string_view place, std::string_view base64);

  /// A user-perceived character of up to five bytes that begins with an entry
  /// is replaced as a whole, as Hugging Face's tokenizers do; of others each
  /// code point that is one.
  SourcedText normalized(const SourcedText& text) const;

 private:
  // What the shortest entry that these bytes begin with becomes.
  std::optional<std::string_view> instead_of(std::string_view bytes) const;

  std::string place_;
  std::vector<std::uint32_t> trie_;
  std::string written_;
};

}  // namespace lipscope
