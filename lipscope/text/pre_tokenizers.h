#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lipscope/text/pattern.h"
#include "lipscope/text/sourced_text.h"

namespace lipscope {

/// The second step of a tokenizer: it cuts a text into words, none of them
/// empty, in which the model then looks for pieces. Some change the words too.
using PreTokenizer = std::function<std::vector<SourcedText>(SourcedText)>;

/// One after the other, each on the words of the one before.
PreTokenizer in_sequence(std::vector<PreTokenizer> steps);

/// What becomes of a match where a text is cut at it.
enum class SplitBehavior {
  removed,               ///< "a-b": a, b
  isolated,              ///< a, -, b
  merged_with_previous,  ///< a-, b
  merged_with_next,      ///< a, -b
  contiguous             ///< as isolated, but neighbouring matches stay one
};

/// Cut at the matches; inverted: at what stands between the matches.
PreTokenizer split_at(Pattern pattern, SplitBehavior behavior,
                      bool inverted = false);

/// GPT-2's own words [Radford19]: contractions, letters, numbers, other
/// characters, each with the blank before it, and white space. Together they
/// are the text.
PreTokenizer gpt2_words();

/// ByteLevel: a blank goes before a word without one, `use_regex` cuts into
/// GPT-2's words, and every byte becomes its character (byte_alphabet.h).
PreTokenizer byte_level(bool add_prefix_space, bool use_regex);

/// When Metaspace puts its mark before a word that does not begin with it.
enum class PrependScheme { always, never, first };

/// Metaspace: blanks become `mark`, which goes before the words as the scheme
/// says (`first`: at the beginning of the text alone), and with `split` begins
/// a word wherever it stands.
PreTokenizer metaspace(char32_t mark, PrependScheme scheme, bool split);

/// BERT's words [Devlin19]: what white space separates, with every punctuation
/// mark a word of its own.
PreTokenizer bert_words();

/// Whitespace: runs of word characters, and runs of all others but white space.
PreTokenizer words_and_signs();

/// WhitespaceSplit.
PreTokenizer split_at_white_space();

/// Punctuation.
PreTokenizer split_at_punctuation(SplitBehavior behavior);

/// Digits: all that is numeric apart, digit by digit or run by run.
PreTokenizer split_at_digits(bool individual);

}  // namespace lipscope
