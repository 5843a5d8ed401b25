#pragma once

/// What kind of character a code point is, as Hugging Face's tokenizers see it:
/// by Unicode's categories, in the versions that unicode_versions.h tells of.
namespace lipscope {

/// Unicode's White_Space: the separators, and some control characters.
bool is_white_space(char32_t c);

/// What a word is written with: letters, marks, decimal digits, letter-like
/// numbers, connectors as the underscore, and the two joiners.
bool is_word_character(char32_t c);

/// Category N: digits, Roman numerals, fractions.
bool is_numeric(char32_t c);

/// All of ASCII that is neither letter, digit, blank nor control, and category
/// P.
bool is_punctuation(char32_t c);

/// What BERT's cleaning takes away: Cc, Cf, Co and U+FFFD, but not tabs and
/// ends of lines. Vertical tab, form feed and U+0085 are control characters to
/// BERT, and no white space.
bool is_bert_control(char32_t c);

/// What BERT takes for an accent: Mn.
bool is_bert_accent(char32_t c);

/// Category M: accents, vowel signs, enclosing circles.
bool is_combining_mark(char32_t c);

/// What normal forms take apart, or put in order with the marks beside it; not
/// what Unicode gained after the version by which Hugging Face's tokenizers
/// normalise.
bool changes_in_normal_forms(char32_t c);

/// The blocks that BERT calls Chinese: the unified and the compatibility
/// ideographs. Kana and Hangul are not among them.
bool is_ideograph(char32_t c);

}  // namespace lipscope
