#include "lipscope/cli/interrupt.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

namespace lipscope::cli {
namespace {

volatile std::sig_atomic_t received = 0;

constexpr int exit_code = 130;

void remember(int) {
  if (received != 0) _exit(exit_code);
  received = 1;
  constexpr char text[] =
      "\nlipscope: stopping after this step; once more ends at once\n";
  // nothing can be done if this fails
  [[maybe_unused]] const ssize_t written =
      write(STDERR_FILENO, text, sizeof(text) - 1);
}

std::size_t lines_in(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::size_t lines = 0;
  for (std::string line; std::getline(in, line);) lines += !in.eof();
  return lines;
}

}  // namespace

void watch_for_interrupts() {
  struct sigaction action = {};
  action.sa_handler = remember;
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM}) {
    // what was told to be ignored, as by nohup, stays ignored
    struct sigaction before = {};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }
}

bool interrupted() { return received != 0; }

std::string what_is_kept(const CLI::App& command) {
  const CLI::Option* out = command.get_option_no_throw("--out");
  if (!out || out->count() == 0)
    return "nothing was kept; with --out FILE --resume a run that is "
           "interrupted goes on where it was";
  const auto file = out->as<std::string>();
  const CLI::Option* resume = command.get_option_no_throw("--resume");
  const std::string how = resume && resume->count() > 0
                              ? "the same command goes on"
                              : "the same command goes on with --resume";
  if (std::filesystem::is_directory(file))
    return fmt::format("{} has the last checkpoint; {}", file, how);
  const std::size_t lines = lines_in(file);
  return fmt::format("{} has {} record{}; {}", file, lines,
                     lines == 1 ? "" : "s", how);
}

}  // namespace lipscope::cli
