#pragma once

#include <CLI/CLI.hpp>
#include <stdexcept>
#include <string>

/// Ctrl-C, and being asked to end. The first such signal is remembered, and the
/// command ends between two steps, with what it wrote whole; the second ends
/// the program at once.
namespace lipscope::cli {

/// From here on SIGINT and SIGTERM are remembered.
void watch_for_interrupts();

/// Whether one was received.
bool interrupted();

/// The command ends because of it. Exit code 130.
class Interrupted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What a command that was interrupted leaves behind, and how to go on, by its
/// options --out and --resume.
std::string what_is_kept(const CLI::App& command);

}  // namespace lipscope::cli
