#include "lipscope/text/normal_forms.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <optional>

#include "lipscope/core/errors.h"
#include "lipscope/text/character_class.h"
#include "lipscope/text/utf8.h"

namespace lipscope {
namespace {

struct Part {
  char32_t code = 0;
  Source source;
  int combining_class = 0;
};

int combining_class(char32_t c) {
  if (!changes_in_normal_forms(c)) return 0;
  return utf8proc_get_property(static_cast<utf8proc_int32_t>(c))
      ->combining_class;
}

// Characters in full decomposition, marks not yet in order.
std::vector<Part> taken_apart(const SourcedText& text, bool compatible) {
  const auto how = static_cast<utf8proc_option_t>(
      UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0));
  std::vector<Part> parts;
  parts.reserve(text.text().size());
  for_each_character(
      text.text(), [&](char32_t c, std::size_t begin, std::size_t end) {
        const Source source = text.source(begin, end);
        if (!changes_in_normal_forms(c)) {
          parts.push_back({c, source, 0});
          return;
        }
        // the longest, of U+FDFA, has eighteen
        std::array<utf8proc_int32_t, 32> found{};
        int last_class = 0;
        const utf8proc_ssize_t size = utf8proc_decompose_char(
            static_cast<utf8proc_int32_t>(c), found.data(),
            static_cast<utf8proc_ssize_t>(found.size()), how, &last_class);
        require(size > 0 && size <= static_cast<utf8proc_ssize_t>(found.size()),
                "normal_form: U+{:04X} has a decomposition of {}",
                static_cast<std::uint32_t>(c), size);
        for (utf8proc_ssize_t i = 0; i < size; ++i) {
          const auto code = static_cast<char32_t>(found[i]);
          parts.push_back({code, source, combining_class(code)});
        }
      });
  return parts;
}

// Marks on one letter in canonical order: those of a smaller class first.
void order_marks(std::vector<Part>& parts) {
  const auto is_mark = [](const Part& c) { return c.combining_class != 0; };
  for (auto begin = parts.begin(); begin != parts.end();) {
    begin = std::find_if(begin, parts.end(), is_mark);
    const auto end = std::find_if_not(begin, parts.end(), is_mark);
    std::stable_sort(begin, end, [](const Part& a, const Part& b) {
      return a.combining_class < b.combining_class;
    });
    begin = end;
  }
}

// The one character that two make, if there is one.
std::optional<char32_t> composed(char32_t first, char32_t second) {
  if (second < 0x300) return std::nullopt;  // nothing below is composed with
  std::array<utf8proc_int32_t, 2> pair = {
      static_cast<utf8proc_int32_t>(first),
      static_cast<utf8proc_int32_t>(second)};
  const utf8proc_ssize_t size = utf8proc_normalize_utf32(
      pair.data(), 2,
      static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  if (size != 1 || !changes_in_normal_forms(static_cast<char32_t>(pair[0])))
    return std::nullopt;
  return static_cast<char32_t>(pair[0]);
}

// Unicode's composition: a character joins the last starter (class 0) unless
// one of the same or a higher class, or another starter, stands between.
std::vector<Part> put_together(const std::vector<Part>& parts) {
  std::vector<Part> whole;
  std::optional<std::size_t> starter;
  for (const Part& part : parts) {
    if (starter) {
      const bool beside = *starter + 1 == whole.size();
      if (beside || whole.back().combining_class < part.combining_class) {
        Part& base = whole[*starter];
        if (const auto one = composed(base.code, part.code)) {
          base.code = *one;
          base.source.begin = std::min(base.source.begin, part.source.begin);
          base.source.end = std::max(base.source.end, part.source.end);
          continue;
        }
      }
    }
    if (part.combining_class == 0) starter = whole.size();
    whole.push_back(part);
  }
  return whole;
}

}  // namespace

SourcedText normal_form(const SourcedText& text, NormalForm form) {
  const bool compatible = form == NormalForm::nfkc || form == NormalForm::nfkd;
  const bool compose = form == NormalForm::nfc || form == NormalForm::nfkc;
  std::vector<Part> parts = taken_apart(text, compatible);
  order_marks(parts);
  if (compose) parts = put_together(parts);
  SourcedText normal;
  for (const Part& part : parts) normal.append(part.code, part.source);
  return normal;
}

}  // namespace lipscope
