#include "lipscope/text/bert_words.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <utility>

#include "lipscope/core/errors.h"
#include "lipscope/text/character_class.h"
#include "lipscope/text/utf8.h"

namespace lipscope {
namespace {

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

// What cleaning takes away. U+0000 is a control character anyway; U+FFFD stands
// for what could not be decoded. Vertical tab, form feed and U+0085 are control
// characters to BERT, and no white space.
bool is_control(char32_t c) {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  const utf8proc_category_t kind = category(c);
  return c == 0xfffd || kind == UTF8PROC_CATEGORY_CC ||
         kind == UTF8PROC_CATEGORY_CF || kind == UTF8PROC_CATEGORY_CO;
}

bool is_punctuation(char32_t c) {
  if (c < 0x80)
    return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) ||
           (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
  const utf8proc_category_t kind = category(c);
  return kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO;
}

// The blocks that BERT calls Chinese: the unified and the compatibility
// ideographs. Kana and Hangul are written with blanks, or treated so.
bool is_ideograph(char32_t c) {
  constexpr std::pair<char32_t, char32_t> blocks[] = {
      {0x4e00, 0x9fff},   {0x3400, 0x4dbf},   {0x20000, 0x2a6df},
      {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f}, {0x2b820, 0x2ceaf},
      {0xf900, 0xfaff},   {0x2f800, 0x2fa1f}};
  return std::any_of(std::begin(blocks), std::end(blocks), [c](const auto& b) {
    return b.first <= c && c <= b.second;
  });
}

// c in full canonical decomposition: itself, for most.
struct Decomposition {
  // the longest, of U+1F82 and its like, has four; Hangul has three
  std::array<utf8proc_int32_t, 8> parts{};
  std::size_t size = 0;

  explicit Decomposition(char32_t c) {
    int last_class = 0;
    const utf8proc_ssize_t found =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts.data(),
                                static_cast<utf8proc_ssize_t>(parts.size()),
                                UTF8PROC_DECOMPOSE, &last_class);
    size = static_cast<std::size_t>(found);
    require(found > 0 && size <= parts.size(),
            "bert_words: U+{:04X} has a decomposition of {}",
            static_cast<std::uint32_t>(c), found);
  }
};

int combining_class(char32_t c) {
  return utf8proc_get_property(static_cast<utf8proc_int32_t>(c))
      ->combining_class;
}

// Marks on one letter in canonical order: those of a smaller class first.
void order_marks(BertWord& word) {
  const auto is_mark = [](const BertCharacter& c) {
    return combining_class(c.code) != 0;
  };
  for (auto begin = word.begin(); begin != word.end();) {
    begin = std::find_if(begin, word.end(), is_mark);
    const auto end = std::find_if_not(begin, word.end(), is_mark);
    std::stable_sort(begin, end,
                     [](const BertCharacter& a, const BertCharacter& b) {
                       return combining_class(a.code) < combining_class(b.code);
                     });
    begin = end;
  }
}

// NFD, without what is non-spacing.
BertWord without_accents(const BertWord& word) {
  BertWord plain;
  for (const BertCharacter& c : word) {
    if (c.code < 0x80) {
      plain.push_back(c);
      continue;
    }
    const Decomposition taken_apart(c.code);
    for (std::size_t i = 0; i < taken_apart.size; ++i) {
      const auto part = static_cast<char32_t>(taken_apart.parts[i]);
      if (category(part) != UTF8PROC_CATEGORY_MN)
        plain.push_back({part, c.begin, c.end});
    }
  }
  // among the marks that are left, the order is what it would have been
  order_marks(plain);
  return plain;
}

BertWord lower(const BertWord& word) {
  BertWord lowered;
  for (const BertCharacter& c : word) {
    const auto small = static_cast<char32_t>(
        utf8proc_tolower(static_cast<utf8proc_int32_t>(c.code)));
    lowered.push_back({small, c.begin, c.end});
    // the one character whose lower case is two: the dotted capital I
    if (c.code == 0x130) {
      lowered.back().code = 'i';
      lowered.push_back({0x307, c.begin, c.end});
    }
  }
  return lowered;
}

// NFD and lower case of the characters between two white spaces.
BertWord simplified(BertWord raw, const BertNormalization& how) {
  if (how.strip_accents) raw = without_accents(raw);
  if (how.lowercase) raw = lower(raw);
  return raw;
}

}  // namespace

BertWord bert_normalized(std::string_view text, const BertNormalization& how) {
  // White space stays white space through every step, and no step looks beyond
  // it: what lies between can be normalised by itself.
  BertWord all, raw;
  const auto end_raw = [&] {
    const BertWord done = simplified(std::exchange(raw, {}), how);
    all.insert(all.end(), done.begin(), done.end());
  };
  const auto add_blank = [&](std::size_t begin, std::size_t end) {
    end_raw();
    all.push_back({U' ', begin, end});
  };
  for (std::size_t at = 0; at < text.size();) {
    const Character c = character_at(text, at);
    const std::size_t begin = at, end = at + c.size;
    at = end;
    if (how.clean_text && is_control(c.code)) continue;
    if (is_white_space(c.code)) {
      add_blank(begin, end);
      if (!how.clean_text) all.back().code = c.code;
      continue;
    }
    const bool alone = how.split_ideographs && is_ideograph(c.code);
    if (alone) add_blank(begin, begin);
    raw.push_back({c.code, begin, end});
    if (alone) add_blank(end, end);
  }
  end_raw();
  return all;
}

std::vector<BertWord> words_in(std::span<const BertCharacter> normalized) {
  std::vector<BertWord> words;
  BertWord word;
  const auto end_word = [&] {
    if (!word.empty()) words.push_back(std::exchange(word, {}));
  };
  for (const BertCharacter& c : normalized) {
    const bool blank = is_white_space(c.code), alone = is_punctuation(c.code);
    if (blank || alone) end_word();
    if (!blank) word.push_back(c);
    if (alone) end_word();
  }
  end_word();
  return words;
}

std::vector<BertWord> bert_words(std::string_view text,
                                 const BertNormalization& how) {
  return words_in(bert_normalized(text, how));
}

}  // namespace lipscope
