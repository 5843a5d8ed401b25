#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace lipscope {

/// What is done to a text before BERT looks for pieces [Devlin19], in this
/// order. The defaults are those of the uncased models.
struct BertNormalization {
  /// control characters (Cc, Cf, Co) go, all white space becomes a blank
  bool clean_text = true;
  /// every CJK ideograph is a word of its own
  bool split_ideographs = true;
  /// characters are taken apart (NFD), and what is non-spacing (Mn) goes
  bool strip_accents = true;
  bool lowercase = true;
};

/// A character as normalisation left it, and the bytes of the text that the
/// character it came from stood at.
struct BertCharacter {
  char32_t code = 0;
  std::size_t begin = 0, end = 0;
};

using BertWord = std::vector<BertCharacter>;

/// A text, which must be UTF-8, after normalisation, white space included. The
/// blanks around an ideograph stand at no byte.
BertWord bert_normalized(std::string_view text, const BertNormalization& how);

/// The words of a normalised text.
std::vector<BertWord> words_in(std::span<const BertCharacter> normalized);

/// The words of a text, which must be UTF-8: what white space separates, with
/// every punctuation mark a word of its own. Punctuation is all of ASCII that
/// is neither letter, digit, blank nor control, and Unicode's category P.
///
/// Upper case becomes lower character by character: a final sigma is a sigma.
/// Categories are those of the Unicode version that utf8proc knows.
std::vector<BertWord> bert_words(std::string_view text,
                                 const BertNormalization& how);

}  // namespace lipscope
