#pragma once

#include <fcntl.h>
#include <poll.h>
#include <pty.h>

#include <chrono>
#include <functional>

#include "tests/cli/program.h"

/// Runs the built program on a terminal of its own.
namespace lipscope::test {

struct Screen {
  int code = -1;     ///< exit code; 128 and the signal that ended it
  std::string text;  ///< all that reached the terminal, control codes included
};

/// Whether this machine has pseudo-terminals: a container may have none.
inline bool has_terminals() {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0) return false;
  const bool usable = grantpt(terminal) == 0 && unlockpt(terminal) == 0;
  const char* name = usable ? ptsname(terminal) : nullptr;
  const int other = name ? open(name, O_RDWR | O_NOCTTY) : -1;
  if (other >= 0) close(other);
  close(terminal);
  return other >= 0;
}

/// Tests that need one. Where there is none they say so and are skipped.
class Terminal : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_terminals()) GTEST_SKIP() << "no pseudo-terminals here";
  }
};

/// Runs `lipscope arguments` on a pseudo-terminal of so many columns, for at
/// most `seconds`. `watch` is told of all that was printed so far, and of the
/// process, whenever something was.
inline Screen on_terminal(
    unsigned short columns, const std::string& arguments,
    const std::function<void(const std::string& text, pid_t child)>& watch = {},
    double seconds = 60) {
  std::fflush(nullptr);
  winsize size{.ws_row = 50, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child < 0) throw std::runtime_error("no pseudo-terminal can be made");
  if (child == 0) {
    unsetenv("COLUMNS");
    execl("/bin/sh", "sh", "-c",
          ("exec " + std::string(LIPSCOPE_PROGRAM) + " " + arguments).c_str(),
          nullptr);
    _exit(127);
  }
  Screen screen;
  const auto start = std::chrono::steady_clock::now();
  const auto spent = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         start)
        .count();
  };
  char buffer[4096];
  for (;;) {
    pollfd ready{.fd = terminal, .events = POLLIN, .revents = 0};
    poll(&ready, 1, 100);
    if (spent() > seconds) {
      kill(child, SIGKILL);
      break;
    }
    if ((ready.revents & (POLLIN | POLLHUP)) == 0) continue;
    const ssize_t got = read(terminal, buffer, sizeof(buffer));
    if (got <= 0) break;  // the other end was closed
    screen.text.append(buffer, static_cast<std::size_t>(got));
    if (watch) watch(screen.text, child);
  }
  close(terminal);
  int status = 0;
  waitpid(child, &status, 0);
  screen.code =
      WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return screen;
}

/// The lines as they stand on the terminal in the end: "\r\033[K" begins a line
/// again.
inline std::vector<std::string> lines_of(const Screen& screen) {
  std::vector<std::string> lines(1);
  for (std::size_t i = 0; i < screen.text.size(); ++i) {
    const char c = screen.text[i];
    if (c == '\n') {
      lines.emplace_back();
    } else if (screen.text.compare(i, 4, "\r\033[K") == 0) {
      lines.back().clear();
      i += 3;
    } else if (c != '\r') {
      lines.back() += c;
    }
  }
  if (lines.back().empty()) lines.pop_back();
  return lines;
}

}  // namespace lipscope::test
