#pragma once

#include <string>
#include <string_view>

namespace lipscope {

/// A regular expression of Oniguruma, which Hugging Face's tokenizers use, in
/// PCRE2's syntax and with the same meaning:
///
///   \s \d           Unicode's classes; PCRE2's own \s holds U+180E as well
///   \p{L} ...       with the characters of Unicode 15 and 16, which PCRE2
///                   10.42 does not know
///   [a[bc]]         a class within a class is part of it
///   \u00e9          a character by its number
///
/// InputError, beginning with `place`, for an escape, a group or a part of a
/// class that the two read differently: [a&&b], [a[^b]], [\S], \w, \b, \h,
/// x{1,2}+, ...
std::string pcre2_regex(std::string_view place, std::string_view regex);

}  // namespace lipscope
