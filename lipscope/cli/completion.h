#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>

namespace lipscope::cli {

/// What a shell, "bash" or "zsh", reads to complete commands, options, words
/// and files of the program, made from the declarations of its options.
/// InputError for another shell.
std::string completion_script(
    const CLI::App& program, const std::string& shell,
    const std::map<std::string, std::string>& summaries);

}  // namespace lipscope::cli
