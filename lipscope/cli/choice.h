#pragma once

#include <CLI/CLI.hpp>
#include <initializer_list>
#include <string>
#include <vector>

/// Options whose value is one of a few words. Help, completion and the message
/// for a word that is none of them all come from the list that is given here.
namespace lipscope::cli {

/// The option takes one of these words and refuses others, with the nearest.
CLI::Option* only(CLI::Option* option, std::vector<std::string> words);

/// The same for a word that stands for a value of an enumeration: what CLI11
/// reads is the number.
template <class Enum>
CLI::Option* only(CLI::Option* option,
                  const std::vector<std::pair<std::string, Enum>>& words);

/// Values of an enumeration with their names, for `only`.
template <class Enum>
std::vector<std::pair<std::string, Enum>> by_name(
    std::initializer_list<Enum> all) {
  std::vector<std::pair<std::string, Enum>> names;
  for (const Enum e : all) names.emplace_back(name_of(e), e);
  return names;
}

/// The words are offered by completion, and others are for the command to
/// judge.
CLI::Option* offer(CLI::Option* option, std::vector<std::string> words);

/// An option whose word `parse` turns into the value, given the word and the
/// name of the option; what parse throws comes out of CLI::App::parse. `value`
/// must outlive the app.
template <class Value, class Parse>
CLI::Option* add_parsed(CLI::App& app, const std::string& name, Value& value,
                        const Parse& parse, const std::string& description) {
  return app.add_option_function<std::string>(
      name,
      [&value, parse, name](const std::string& word) {
        value = parse(word, name);
      },
      description);
}

/// The words of an option that has such a list, in its order.
std::vector<std::string> words_of(const CLI::Option& option);

namespace choice {
CLI::Option* numbers(CLI::Option* option,
                     std::vector<std::pair<std::string, int>> words);
}  // namespace choice

template <class Enum>
CLI::Option* only(CLI::Option* option,
                  const std::vector<std::pair<std::string, Enum>>& words) {
  std::vector<std::pair<std::string, int>> numbers;
  for (const auto& [word, value] : words)
    numbers.emplace_back(word, static_cast<int>(value));
  return choice::numbers(option, std::move(numbers));
}

}  // namespace lipscope::cli
