#include "lipscope/audit/source.h"

#include <optional>
#include <type_traits>

#include "lipscope/core/errors.h"
#include "lipscope/core/nearest_word.h"
#include "lipscope/core/number_text.h"

namespace lipscope::audit {

template <class Number>
Number parse_number(const std::string& text, const std::string& where) {
  std::optional<Number> value;
  if constexpr (std::is_integral_v<Number>)
    value = whole_number_in(text);
  else
    value = finite_number_in(text);
  if (!value)
    throw InputError(fmt::format(
        "{}: '{}' is not {}", where, text,
        std::is_integral_v<Number> ? "a whole number" : "a finite number"));
  return *value;
}

template Index parse_number(const std::string&, const std::string&);
template double parse_number(const std::string&, const std::string&);

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == by)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

bool gives_text(const SourceOptions& options) {
  return !options.text.empty() || !options.ids.empty() ||
         !options.token_ids.empty();
}

std::string text_name(const SourceOptions& options) {
  if (!options.text.empty()) return options.text;
  return options.ids.empty() ? "ids in memory" : options.ids;
}

bool gives_tokens(const SourceOptions& options) {
  return !options.input.empty() || options.tokens;
}

bool gives_embedded(const SourceOptions& options) {
  return !options.embedded.empty() || options.embedded_tokens;
}

Kind parse_kind(const std::string& name) {
  if (name == "auto") return Kind::dot;
  for (const Kind kind : all_kinds)
    if (name == name_of(kind)) return kind;
  const std::vector<std::string> words = kind_words();
  throw InputError(fmt::format("--kind {}: expected {}{}", name, listed(words),
                               did_you_mean(name, words)));
}

std::vector<std::string> kind_words() {
  std::vector<std::string> words{"auto"};
  for (const Kind kind : all_kinds) words.push_back(name_of(kind));
  return words;
}

std::string listed(const std::vector<std::string>& words) {
  std::string text = words.front();
  for (std::size_t i = 1; i < words.size(); ++i)
    text += (i + 1 < words.size() ? ", " : " or ") + words[i];
  return text;
}

std::vector<Index> parse_lengths(const std::string& text) {
  const std::string where = "--lengths " + text;
  std::vector<Index> lengths;
  const std::vector<std::string> range = split(text, ':');
  constexpr Index most = Index{1} << 24;
  if (range.size() == 2 || range.size() == 3) {
    const Index begin = parse_number<Index>(range[0], where);
    const Index end = parse_number<Index>(range[1], where);
    const Index step =
        range.size() == 3 ? parse_number<Index>(range[2], where) : 1;
    if (step < 1 || begin < 1 || end > most)
      throw InputError(where + ": a:b:s counts up from a >= 1 by s >= 1");
    constexpr Index most_lengths = 100'000;
    if (const Index count = (end - begin + step - 1) / step;
        count > most_lengths)
      throw InputError(fmt::format("{}: {} lengths; at most {} are possible",
                                   where, count, most_lengths));
    for (Index n = begin; n < end; n += step) lengths.push_back(n);
  } else if (range.size() == 1) {
    for (const std::string& part : split(text, ','))
      lengths.push_back(parse_number<Index>(part, where));
  }
  if (lengths.empty())
    throw InputError(where + ": no lengths; expected a:b:s or a,b,c");
  for (const Index n : lengths)
    if (n < 1 || n > most)
      throw InputError(fmt::format(
          "{}: a sequence of {} tokens; 1 to {} are possible", where, n, most));
  return lengths;
}

std::vector<Index> lengths_of(const SourceOptions& o) {
  return parse_lengths(o.lengths.empty() ? "128" : o.lengths);
}

}  // namespace lipscope::audit
