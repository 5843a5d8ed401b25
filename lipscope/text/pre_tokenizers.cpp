#include "lipscope/text/pre_tokenizers.h"

#include <algorithm>
#include <utility>

#include "lipscope/text/byte_alphabet.h"
#include "lipscope/text/character_class.h"
#include "lipscope/text/normalizers.h"
#include "lipscope/text/utf8.h"

namespace lipscope {
namespace {

using Spans = std::vector<PatternSpan>;

// A match is joined to what comes before it, unless that is a match too.
Spans merged_with_previous(const Spans& spans) {
  Spans merged;
  bool after_match = false;
  for (const PatternSpan& span : spans) {
    if (span.matched && !after_match && !merged.empty())
      merged.back().end = span.end;
    else
      merged.push_back(span);
    after_match = span.matched;
  }
  return merged;
}

// The same from the other end.
Spans merged_with_next(const Spans& spans) {
  Spans merged;
  bool before_match = false;
  for (auto span = spans.rbegin(); span != spans.rend(); ++span) {
    if (span->matched && !before_match && !merged.empty())
      merged.back().begin = span->begin;
    else
      merged.push_back(*span);
    before_match = span->matched;
  }
  std::reverse(merged.begin(), merged.end());
  return merged;
}

Spans contiguous(const Spans& spans) {
  Spans runs;
  for (const PatternSpan& span : spans) {
    if (!runs.empty() && runs.back().matched == span.matched)
      runs.back().end = span.end;
    else
      runs.push_back(span);
  }
  return runs;
}

Spans by_behavior(Spans spans, SplitBehavior behavior) {
  switch (behavior) {
    case SplitBehavior::removed:
      std::erase_if(spans, [](const PatternSpan& s) { return s.matched; });
      return spans;
    case SplitBehavior::isolated:
      return spans;
    case SplitBehavior::merged_with_previous:
      return merged_with_previous(spans);
    case SplitBehavior::merged_with_next:
      return merged_with_next(spans);
    case SplitBehavior::contiguous:
      return contiguous(spans);
  }
  return spans;
}

}  // namespace

PreTokenizer in_sequence(std::vector<PreTokenizer> steps) {
  return [steps = std::move(steps)](SourcedText text) {
    std::vector<SourcedText> words;
    words.push_back(std::move(text));
    for (const PreTokenizer& step : steps) {
      std::vector<SourcedText> finer;
      for (SourcedText& word : words)
        for (SourcedText& part : step(std::move(word)))
          finer.push_back(std::move(part));
      words = std::move(finer);
    }
    return words;
  };
}

PreTokenizer split_at(Pattern pattern, SplitBehavior behavior, bool inverted) {
  return [pattern = std::move(pattern), behavior,
          inverted](const SourcedText& text) {
    Spans spans = pattern.spans(text.text());
    if (inverted)
      for (PatternSpan& span : spans) span.matched = !span.matched;
    std::vector<SourcedText> words;
    for (const PatternSpan& span : by_behavior(std::move(spans), behavior))
      if (span.begin < span.end)
        words.push_back(text.part(span.begin, span.end));
    return words;
  };
}

PreTokenizer gpt2_words() {
  static const Pattern pattern = Pattern::of_regex(
      "GPT-2's words",
      R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+)"
      R"(|\s+(?!\S)|\s+)");
  return split_at(pattern, SplitBehavior::isolated);
}

PreTokenizer byte_level(bool add_prefix_space, bool use_regex) {
  return [add_prefix_space, use_regex,
          cut = use_regex ? gpt2_words() : nullptr](SourcedText text) {
    if (add_prefix_space && !text.text().starts_with(' ')) text.prepend(" ");
    std::vector<SourcedText> words;
    if (use_regex)
      words = cut(std::move(text));
    else
      words.push_back(std::move(text));
    for (SourcedText& word : words) word = in_byte_alphabet(word);
    return words;
  };
}

PreTokenizer metaspace(char32_t mark, PrependScheme scheme, bool split) {
  const std::string written = utf8_of(mark);
  return
      [written, scheme, split,
       to_marks = replacing(Pattern::of_string(" "), written),
       at_marks = split_at(Pattern::of_string(written),
                           SplitBehavior::merged_with_next)](SourcedText text) {
        text = to_marks(std::move(text));
        const bool due = scheme == PrependScheme::always ||
                         (scheme == PrependScheme::first && text.begin() == 0);
        if (due && !text.text().starts_with(written)) text.prepend(written);
        if (split) return at_marks(std::move(text));
        std::vector<SourcedText> words;
        words.push_back(std::move(text));
        return words;
      };
}

PreTokenizer bert_words() {
  return in_sequence(
      {split_at_white_space(), split_at_punctuation(SplitBehavior::isolated)});
}

PreTokenizer words_and_signs() {
  const PreTokenizer by_kind = split_at(
      Pattern::of_characters(is_word_character), SplitBehavior::contiguous);
  return in_sequence({split_at_white_space(), by_kind});
}

PreTokenizer split_at_white_space() {
  return split_at(Pattern::of_characters(is_white_space),
                  SplitBehavior::removed);
}

PreTokenizer split_at_punctuation(SplitBehavior behavior) {
  return split_at(Pattern::of_characters(is_punctuation), behavior);
}

PreTokenizer split_at_digits(bool individual) {
  return split_at(
      Pattern::of_characters(is_numeric),
      individual ? SplitBehavior::isolated : SplitBehavior::contiguous);
}

}  // namespace lipscope
