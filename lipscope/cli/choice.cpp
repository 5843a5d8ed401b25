#include "lipscope/cli/choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "lipscope/core/nearest_word.h"

namespace lipscope::cli {
namespace {

// the name under which CLI11 keeps the list
const char* const words_validator = "words";

std::string refusal(const std::string& word,
                    const std::vector<std::string>& words) {
  return fmt::format("'{}' is none of {}{}", word, fmt::join(words, ", "),
                     did_you_mean(word, words));
}

CLI::Validator described(const std::vector<std::string>& words) {
  CLI::Validator v(fmt::format("{}", fmt::join(words, "|")));
  v.name(words_validator);
  return v;
}

}  // namespace

CLI::Option* only(CLI::Option* option, std::vector<std::string> words) {
  CLI::Validator v = described(words);
  v.operation([words](std::string& word) {
    const bool known =
        std::find(words.begin(), words.end(), word) != words.end();
    return known ? std::string() : refusal(word, words);
  });
  return option->check(v);
}

CLI::Option* choice::numbers(CLI::Option* option,
                             std::vector<std::pair<std::string, int>> words) {
  std::vector<std::string> names;
  std::transform(words.begin(), words.end(), std::back_inserter(names),
                 [](const auto& word) { return word.first; });
  CLI::Validator v = described(names);
  v.operation([words, names](std::string& word) {
    for (const auto& [name, value] : words)
      if (word == name) {
        word = std::to_string(value);
        return std::string();
      }
    return refusal(word, names);
  });
  v.non_modifying(false);
  return option->transform(v);
}

CLI::Option* offer(CLI::Option* option, std::vector<std::string> words) {
  CLI::Validator v = described(words);
  v.operation([](std::string&) { return std::string(); });
  return option->check(v);
}

std::vector<std::string> words_of(const CLI::Option& option) {
  // CLI11 knows validators by name, and throws where there is none
  auto& searched = const_cast<CLI::Option&>(option);
  try {
    const std::string text =
        searched.get_validator(words_validator)->get_description();
    std::vector<std::string> words(1);
    for (const char c : text) {
      if (c == '|')
        words.emplace_back();
      else
        words.back() += c;
    }
    return words;
  } catch (const CLI::OptionNotFound&) {
    return {};
  }
}

}  // namespace lipscope::cli
