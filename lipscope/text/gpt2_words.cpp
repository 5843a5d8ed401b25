#include "lipscope/text/gpt2_words.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <memory>
#include <string>

#include "lipscope/core/errors.h"

namespace lipscope {
namespace {

// Unicode's White_Space. PCRE2's own \s holds U+180E as well, which has not
// been white space since Unicode 6.3.
constexpr std::string_view space =
    R"(\x09-\x0d\x20\x85\xa0\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029})"
    R"(\x{202f}\x{205f}\x{3000})";

struct CodeDeleter {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct MatchDeleter {
  void operator()(pcre2_match_data* match) const {
    pcre2_match_data_free(match);
  }
};
using Code = std::unique_ptr<pcre2_code, CodeDeleter>;

std::string message_of(int error) {
  PCRE2_UCHAR text[256] = {};
  pcre2_get_error_message(error, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

Code compile() {
  // GPT-2's own pattern,
  //   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+
  //   |\s+(?!\S)|\s+
  const std::string pattern = fmt::format(
      R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{{L}}+| ?\p{{N}}+| ?[^{0}\p{{L}}\p{{N}}]+)"
      R"(|[{0}]+(?![^{0}])|[{0}]+)",
      space);
  int error = 0;
  PCRE2_SIZE at = 0;
  Code code(pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
      PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED, &error, &at, nullptr));
  if (!code)
    throw RunError(fmt::format("PCRE2 refuses GPT-2's pattern at {}: {}", at,
                               message_of(error)));
  // where the machine allows no compiled code, it is interpreted instead
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  return code;
}

}  // namespace

std::vector<std::string_view> gpt2_words(std::string_view text) {
  static const Code code = compile();
  const std::unique_ptr<pcre2_match_data, MatchDeleter> match(
      pcre2_match_data_create_from_pattern(code.get(), nullptr));
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < text.size();) {
    // checking the whole text again for every word would be quadratic
    const int found =
        pcre2_match(code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()),
                    text.size(), at, PCRE2_NO_UTF_CHECK, match.get(), nullptr);
    if (found < 1)
      throw RunError(fmt::format("PCRE2 finds no word at byte {} of {}: {}", at,
                                 text.size(), message_of(found)));
    const std::size_t end = pcre2_get_ovector_pointer(match.get())[1];
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

}  // namespace lipscope
