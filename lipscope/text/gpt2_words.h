#pragma once

#include <string_view>
#include <vector>

namespace lipscope {

/// The words that GPT-2 cuts a text into before it looks for pieces
/// [Radford19]: contractions, letters, numbers, other characters, each with the
/// blank before it, and white space. Together they are the text. The text must
/// be UTF-8, and outlive the words.
///
/// Which characters are letters and numbers is Unicode 14 (PCRE2 10.42).
std::vector<std::string_view> gpt2_words(std::string_view text);

}  // namespace lipscope
