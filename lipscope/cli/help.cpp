#include "lipscope/cli/help.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "lipscope/cli/choice.h"
#include "lipscope/cli/terminal.h"
#include "lipscope/report/wrap.h"

namespace lipscope::cli {
namespace {

// longer lines are hard to read
constexpr std::size_t widest_help = 100, usual_help = 80;

std::size_t help_width() {
  const std::size_t screen = screen_width(STDOUT_FILENO);
  return screen == 0 ? usual_help : std::min(screen, widest_help);
}

// A description is sentences, lists ("  word  text", continued by lines that
// are farther in) and examples ("  lipscope ...").
struct Description {
  std::string text, examples;
};

std::string broken_command(const std::string& command, std::size_t width) {
  const std::string lines = wrapped("  " + command, width - 2, 6);
  std::string text;
  for (const char c : lines) {
    if (c == '\n') text += " \\";
    text += c;
  }
  return text + "\n";
}

Description understood(const std::string& description, std::size_t width) {
  Description result;
  std::string open;  // a paragraph, an item or a command
  enum { nothing, paragraph, item, command } kind = nothing;
  const auto close = [&] {
    if (kind == paragraph) result.text += wrapped(open, width) + "\n";
    if (kind == item) {
      const std::size_t word = open.find_first_not_of(' ');
      const std::size_t gap = open.find("  ", word);
      const std::size_t text =
          gap == open.npos ? word : open.find_first_not_of(' ', gap);
      result.text += wrapped(open, width, text) + "\n";
    }
    if (kind == command) result.examples += broken_command(open, width);
    kind = nothing;
  };
  std::size_t at = 0;
  while (at <= description.size()) {
    const std::size_t end =
        std::min(description.find('\n', at), description.size());
    const std::string line = description.substr(at, end - at);
    at = end + 1;
    const std::size_t first = line.find_first_not_of(' ');
    if (first == line.npos) {
      const bool text = kind == paragraph || kind == item;
      close();
      if (text) result.text += "\n";
    } else if (kind == command && open.back() == '\\') {
      open = open.substr(0, open.size() - 1) + line.substr(first);
    } else if (line.rfind("  lipscope ", 0) == 0) {
      close();
      kind = command;
      open = line.substr(first);
    } else if (first > 0 && !(kind == item && first > 2)) {
      close();
      kind = item;
      open = line;
    } else if (kind != nothing) {
      open += " " + line.substr(first);
    } else {
      kind = paragraph;
      open = line;
    }
  }
  close();
  while (!result.text.empty() && result.text.back() == '\n')
    result.text.pop_back();
  return result;
}

// "1 to 4096", "above 0": which numbers it takes, as its check says
std::string range_of(const CLI::Option& option) {
  if (!words_of(option).empty()) return "";
  const std::string type = option.get_type_name();
  const std::size_t colon = type.find(':');
  return colon == type.npos ? "" : type.substr(colon + 1);
}

// a space that no line is broken at, until all is laid out
const char* const joint = "\u00a0";

std::string replaced(const std::string& text, const std::string& from,
                     const std::string& to) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t next = std::min(text.find(from, at), text.size());
    result += text.substr(at, next - at) + (next < text.size() ? to : "");
    at = next + from.size();
  }
  return result;
}

std::string facts_of(const CLI::Option& option) {
  std::vector<std::string> facts;
  if (option.get_required()) facts.push_back("needed");
  const std::vector<std::string> words = words_of(option);
  constexpr std::size_t few = 12;
  const std::string& text = option.get_description();
  if (!words.empty() && words.size() <= few &&
      !std::all_of(words.begin(), words.end(), [&](const std::string& w) {
        return text.find(w) != text.npos;
      }))
    facts.push_back(fmt::format("{}", fmt::join(words, ", ")));
  if (const std::string range = range_of(option); !range.empty())
    facts.push_back(range);
  if (const std::string usually = option.get_default_str(); !usually.empty())
    facts.push_back("default: " + usually);
  // "default: 1" stays on one line
  for (std::string& fact : facts)
    if (fact.size() < 30) fact = replaced(fact, " ", joint);
  return facts.empty() ? "" : fmt::format(" [{}]", fmt::join(facts, "; "));
}

std::string option_text(const CLI::Option& option, std::size_t width) {
  constexpr std::size_t column = 24;
  std::string names =
      "  " + fmt::format("{}", fmt::join(names_of(option), ", "));
  if (const std::string value = value_name(option);
      !value.empty() && !option.get_positional())
    names += " " + value;
  const std::string text = option.get_description() + facts_of(option);
  if (display_width(names) + 2 > column)
    return names + "\n" +
           wrapped(std::string(column, ' ') + text, width, column) + "\n";
  return wrapped(names + std::string(column - display_width(names), ' ') + text,
                 width, column) +
         "\n";
}

}  // namespace

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  if (option.get_positional()) return {option.get_name(true)};
  for (const std::string& name : option.get_snames())
    names.push_back("-" + name);
  for (const std::string& name : option.get_lnames())
    names.push_back("--" + name);
  return names;
}

std::string value_name(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return "";
  const std::string type = option.get_type_name();
  const std::string name = type.substr(0, type.find(':'));
  if (!words_of(option).empty() && name == "TEXT") return "WORD";
  if (name == "INT" || name == "UINT") return "N";
  if (name == "FLOAT") return "X";
  if (name == "ENUM") return "WORD";
  return name;
}

std::string Help::make_help(const CLI::App* app, std::string name,
                            CLI::AppFormatMode) const {
  const std::size_t width = help_width();
  const Description described = understood(app->get_description(), width);
  // without the folder that the program was started from
  std::string usage =
      "Usage: " +
      name.substr(std::min(name.rfind('/', name.find(' ')) + 1, name.size()));
  const bool program = !app->get_subcommands(nullptr).empty();
  std::vector<std::string> groups;
  std::map<std::string, std::string> options;
  for (const CLI::Option* option : app->get_options()) {
    if (option->get_group().empty()) continue;
    if (option->get_positional())
      usage += option->get_required() ? " " + option->get_name(true)
                                      : " [" + option->get_name(true) + "]";
    if (!options.contains(option->get_group()))
      groups.push_back(option->get_group());
    options[option->get_group()] += option_text(*option, width);
  }
  std::string text =
      wrapped(usage + (program ? " COMMAND [OPTIONS]" : " [OPTIONS]"), width,
              2) +
      "\n\n";
  if (!described.examples.empty())
    text += "Examples:\n" + described.examples + "\n";
  text += described.text + "\n";
  if (program) {
    std::vector<Meaning> commands;
    for (const CLI::App* sub : app->get_subcommands(nullptr))
      if (!sub->get_group().empty())
        commands.push_back(
            {"  " + sub->get_name(), summaries_.at(sub->get_name())});
    text += "\nCommands:\n" + legend(commands, width);
  }
  for (const std::string& group : groups)
    text += "\n" + wrapped(group, width) + ":\n" + options[group];
  return replaced(text, joint, " ");
}

}  // namespace lipscope::cli
