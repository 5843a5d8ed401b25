#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lipscope/text/normal_forms.h"
#include "lipscope/text/pattern.h"
#include "lipscope/text/precompiled.h"
#include "lipscope/text/sourced_text.h"

namespace lipscope {

/// The first step of a tokenizer: it changes the characters of a text.
using Normalizer = std::function<SourcedText(SourcedText)>;

/// One after the other.
Normalizer in_sequence(std::vector<Normalizer> steps);

/// NFC, NFD, NFKC, NFKD.
Normalizer to_normal_form(NormalForm form);

/// Lower case character by character: a final sigma is a sigma.
Normalizer to_lower_case();

/// Without the characters of category M, as StripAccents does: a letter that
/// was not taken apart before keeps its accent.
Normalizer without_marks();

/// What BERT does to a text [Devlin19], in this order. The defaults are those
/// of the uncased models.
struct BertNormalization {
  /// control characters go, all white space becomes a blank
  bool clean_text = true;
  /// every CJK ideograph is a word of its own: blanks go around it
  bool split_ideographs = true;
  /// characters are taken apart (NFD), and what is non-spacing (Mn) goes
  bool strip_accents = true;
  bool lowercase = true;
};
Normalizer as_bert(const BertNormalization& how);

/// Every match of the pattern becomes `content`, which stands where the match's
/// last character stood.
Normalizer replacing(Pattern pattern, std::string content);

/// `content` before every text that is not empty.
Normalizer prepending(std::string content);

/// Without white space at the beginning, at the end, or at both.
Normalizer stripped(bool left, bool right);

/// By the table of a SentencePiece model.
Normalizer precompiled(Precompiled table);

/// Every byte as the character that byte-level vocabularies write for it
/// (byte_alphabet.h).
Normalizer to_byte_alphabet();

}  // namespace lipscope
