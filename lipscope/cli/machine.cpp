#include "lipscope/cli/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <thread>

namespace lipscope::cli {

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

std::string command_line() {
  const std::string plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+,./"
      ":@%";
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string line;
  for (std::string word; std::getline(file, word, '\0');) {
    if (!line.empty()) line += ' ';
    if (!word.empty() && word.find_first_not_of(plain) == word.npos) {
      line += word;
      continue;
    }
    line += '\'';
    for (const char c : word) {
      if (c == '\'')
        line += "'\\''";
      else
        line += c;
    }
    line += '\'';
  }
  return line;
}

}  // namespace lipscope::cli
