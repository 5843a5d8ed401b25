#include "lipscope/core/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <thread>
#include <vector>

namespace lipscope {

std::string cpu_field(const std::string& name) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon != std::string::npos && line.rfind(name, 0) == 0)
      return line.substr(std::min(colon + 2, line.size()));
  }
  return "unknown";
}

std::string this_machine() {
  return fmt::format("{}, {} cores", cpu_field("model name"),
                     std::thread::hardware_concurrency());
}

std::string instruction_sets() {
  const std::string flags = fmt::format(" {} ", cpu_field("flags"));
  std::vector<std::string> found;
  for (const char* set :
       {"sse4_2", "avx", "avx2", "fma", "avx512f", "avx512_bf16", "amx_tile"})
    if (flags.find(fmt::format(" {} ", set)) != flags.npos)
      found.emplace_back(set);
  return found.empty() ? "unknown" : fmt::format("{}", fmt::join(found, " "));
}

std::string kind_of_cpu() {
  return fmt::format("{}, {}", cpu_field("model name"), instruction_sets());
}

namespace {

// as a shell would have to be given it
std::string quoted(const std::string& word) {
  const std::string plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+,./"
      ":@%";
  if (!word.empty() && word.find_first_not_of(plain) == word.npos) return word;
  std::string text = "'";
  for (const char c : word) {
    if (c == '\'')
      text += "'\\''";
    else
      text += c;
  }
  return text + '\'';
}

void append(std::string& line, const std::string& word) {
  if (!line.empty()) line += ' ';
  line += word;
}

}  // namespace

std::vector<std::string> command_words() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> found;
  for (std::string word; std::getline(file, word, '\0');) found.push_back(word);
  return found;
}

std::string command_line() {
  std::string line;
  for (const std::string& word : command_words()) append(line, quoted(word));
  return line;
}

std::string command_without(const std::vector<std::string>& options) {
  std::string line;
  bool value = false;  // of an option that is left out
  for (const std::string& word : command_words()) {
    const bool left_out =
        std::find(options.begin(), options.end(),
                  word.substr(0, word.find('='))) != options.end();
    if (!value && !left_out) append(line, quoted(word));
    value = !value && left_out && word.find('=') == word.npos;
  }
  return line;
}

}  // namespace lipscope
