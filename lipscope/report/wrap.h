#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lipscope {

/// How many columns of a terminal the text takes: letters with accents count
/// once, wide East Asian ones twice. Bytes that are not UTF-8 count one each.
std::size_t display_width(std::string_view text);

/// The text broken between words so that no line takes more than `width`
/// columns, each line but the first after `indent` spaces. A word that is
/// longer stands on a line of its own. Width 0: no limit. No newline at the
/// end.
std::string wrapped(std::string_view text, std::size_t width,
                    std::size_t indent = 0);

/// Every line of the text that is too long, broken between words; its rest goes
/// on below its own first word. Width 0: the text as it is.
std::string fitted(std::string_view text, std::size_t width);

/// What a word of a table means.
struct Meaning {
  std::string word, text;
};

/// Words in a column, their meanings beside them, broken between words at
/// `width` columns; 0: at 80.
std::string legend(const std::vector<Meaning>& meanings, std::size_t width);

}  // namespace lipscope
