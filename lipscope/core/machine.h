#pragma once

#include <string>
#include <vector>

namespace lipscope {

/// The first value of a field in /proc/cpuinfo, or "unknown".
std::string cpu_field(const std::string& name);

/// In words: its processor and how many cores.
std::string this_machine();

/// Those that matter for products, of which the processor offers some; or
/// "unknown".
std::string instruction_sets();

/// What decides how numbers are rounded here: the model of the processor and
/// the instructions that it offers, of which a virtual machine may hide some.
std::string kind_of_cpu();

/// As it was typed, as far as that is known: arguments that a shell would take
/// apart stand in quotes.
std::string command_line();

/// Its words, the program first.
std::vector<std::string> command_words();

/// The same without these options, which have one value each.
std::string command_without(const std::vector<std::string>& options);

}  // namespace lipscope
