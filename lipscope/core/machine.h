#pragma once

#include <string>
#include <vector>

namespace lipscope {

/// The first value of a field in /proc/cpuinfo, or "unknown".
std::string cpu_field(const std::string& name);

/// In words: its processor and how many cores.
std::string this_machine();

/// As it was typed, as far as that is known: arguments that a shell would take
/// apart stand in quotes.
std::string command_line();

/// The same without these options, which have one value each.
std::string command_without(const std::vector<std::string>& options);

}  // namespace lipscope
