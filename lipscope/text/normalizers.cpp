#include "lipscope/text/normalizers.h"

#include <utf8proc.h>

#include <utility>

#include "lipscope/text/byte_alphabet.h"
#include "lipscope/text/character_class.h"
#include "lipscope/text/unicode_versions.h"
#include "lipscope/text/utf8.h"

namespace lipscope {
namespace {

// A text made of another, character by character: change(code, source, out).
template <class Change>
SourcedText changed(const SourcedText& text, const Change& change) {
  SourcedText out;
  for_each_character(text.text(),
                     [&](char32_t c, std::size_t begin, std::size_t end) {
                       change(c, text.source(begin, end), out);
                     });
  return out;
}

template <class Gone>
SourcedText without(const SourcedText& text, const Gone& gone) {
  SourcedText out;
  for_each_character(text.text(),
                     [&](char32_t c, std::size_t begin, std::size_t end) {
                       if (!gone(c)) out.append(text, begin, end);
                     });
  return out;
}

char32_t lower_case(char32_t c) {
  for (const NewLowerCase& range : new_lower_case())
    if (range.first <= c && c <= range.last)
      return static_cast<char32_t>(static_cast<int>(c) + range.offset);
  return static_cast<char32_t>(
      utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}

SourcedText lower(const SourcedText& text) {
  return changed(text, [](char32_t c, Source source, SourcedText& out) {
    // the one character whose lower case is two: the dotted capital I
    out.append(c == 0x130 ? U'i' : lower_case(c), source);
    if (c == 0x130) out.append(char32_t{0x307}, source);
  });
}

SourcedText cleaned(const SourcedText& text) {
  return changed(text, [](char32_t c, Source source, SourcedText& out) {
    if (!is_bert_control(c)) out.append(is_white_space(c) ? U' ' : c, source);
  });
}

SourcedText with_ideographs_apart(const SourcedText& text) {
  SourcedText out;
  for_each_character(text.text(),
                     [&](char32_t c, std::size_t begin, std::size_t end) {
                       const bool alone = is_ideograph(c);
                       const Source source = text.source(begin, end);
                       if (alone)
                         out.append(U' ', {source.begin, source.begin});
                       out.append(text, begin, end);
                       if (alone) out.append(U' ', {source.end, source.end});
                     });
  return out;
}

}  // namespace

Normalizer in_sequence(std::vector<Normalizer> steps) {
  return [steps = std::move(steps)](SourcedText text) {
    for (const Normalizer& step : steps) text = step(std::move(text));
    return text;
  };
}

Normalizer to_normal_form(NormalForm form) {
  return [form](const SourcedText& text) { return normal_form(text, form); };
}

Normalizer to_lower_case() { return lower; }

Normalizer without_marks() {
  return
      [](const SourcedText& text) { return without(text, is_combining_mark); };
}

Normalizer as_bert(const BertNormalization& how) {
  return [how](SourcedText text) {
    if (how.clean_text) text = cleaned(text);
    if (how.split_ideographs) text = with_ideographs_apart(text);
    if (how.strip_accents)
      text = without(normal_form(text, NormalForm::nfd), is_bert_accent);
    if (how.lowercase) text = lower(text);
    return text;
  };
}

Normalizer replacing(Pattern pattern, std::string content) {
  return [pattern = std::move(pattern),
          content = std::move(content)](const SourcedText& text) {
    SourcedText out;
    std::size_t place = text.begin();  // for what replaces nothing
    for (const PatternSpan& span : pattern.spans(text.text())) {
      Source last{place, place};  // where its last character came from
      for_each_character(std::string_view(text.text())
                             .substr(span.begin, span.end - span.begin),
                         [&](char32_t, std::size_t begin, std::size_t end) {
                           last = text.source(span.begin + begin,
                                              span.begin + end);
                         });
      if (span.matched)
        out.append(content, last);
      else
        out.append(text, span.begin, span.end);
      place = last.end;
    }
    return out;
  };
}

Normalizer prepending(std::string content) {
  return [content = std::move(content)](SourcedText text) {
    if (!text.empty()) text.prepend(content);
    return text;
  };
}

Normalizer stripped(bool left, bool right) {
  return [left, right](const SourcedText& text) {
    // the first character that stays, and the end of the last
    std::size_t first = text.text().size(), last = 0;
    for_each_character(text.text(),
                       [&](char32_t c, std::size_t begin, std::size_t end) {
                         if (is_white_space(c)) return;
                         first = std::min(first, begin);
                         last = end;
                       });
    if (last == 0) {  // white space alone
      return left || right ? SourcedText() : text;
    }
    return text.part(left ? first : 0, right ? last : text.text().size());
  };
}

Normalizer precompiled(Precompiled table) {
  return [table = std::move(table)](const SourcedText& text) {
    return table.normalized(text);
  };
}

Normalizer to_byte_alphabet() { return in_byte_alphabet; }

}  // namespace lipscope
