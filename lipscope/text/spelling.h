#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lipscope/text/token.h"

namespace lipscope {

/// How a vocabulary writes text in its pieces, and back.
struct Spelling {
  enum class Kind {
    plain,       ///< as it is
    bytes,       ///< each byte as its character (byte_alphabet.h)
    marks,       ///< blanks as `mark`, bytes as <0x00> to <0xFF>
    continuing,  ///< pieces within a word begin with `mark`
  };
  Kind kind = Kind::plain;
  std::string mark;  ///< U+2581 for most, ## for BERT
  /// A mark is put before a text, and its blank is no part of the text.
  bool marked_beginning = false;

  /// What each piece stands for: bytes, which may be part of a character; with
  /// `continuing` as it is written.
  std::vector<std::string> read(const std::vector<std::string>& spelled) const;

  /// The text that ids stand for, given what their pieces do.
  std::string joined(const std::vector<std::string>& pieces,
                     std::span<const TokenId> ids) const;
};

}  // namespace lipscope
