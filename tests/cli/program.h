#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

/// Runs the built program as a user would.
namespace lipscope::test {

struct Outcome {
  int code = -1;
  std::string out, err;
};

inline std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A folder of this test's own, gone when the test is over.
class Folder {
 public:
  Folder() {
    std::string name =
        (std::filesystem::temp_directory_path() / "lipscope-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }

  std::string operator/(const std::string& name) const {
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

inline Outcome run_program(const std::string& program,
                           const std::string& arguments) {
  const Folder scratch;
  const std::string command = program + " " + arguments + " > " +
                              (scratch / "out") + " 2> " + (scratch / "err") +
                              " < /dev/null";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          contents(scratch / "out"), contents(scratch / "err")};
}

inline Outcome lipscope(const std::string& arguments) {
  return run_program(LIPSCOPE_PROGRAM, arguments);
}

/// A second process. It throws where none can be made: -1 in place of a process
/// would make kill() end every process of the machine.
inline pid_t fork_process() {
  std::fflush(nullptr);  // or the child would print our buffers once more
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("no process can be made");
  return child;
}

/// Starts the program and kills it after so many milliseconds. Whether it was
/// still alive then.
inline bool kill_after(int milliseconds, const std::string& arguments) {
  const pid_t child = fork_process();
  if (child == 0) {
    std::freopen("/dev/null", "w", stdout);
    std::freopen("/dev/null", "w", stderr);
    execl("/bin/sh", "sh", "-c",
          ("exec " + std::string(LIPSCOPE_PROGRAM) + " " + arguments).c_str(),
          nullptr);
    _exit(127);
  }
  usleep(1000 * milliseconds);
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status);
}

inline std::vector<nlohmann::json> json_lines(const std::string& text) {
  std::vector<nlohmann::json> records;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    records.push_back(nlohmann::json::parse(line));
  return records;
}

/// A record without what differs from run to run, and from file to screen.
inline nlohmann::json without_times(nlohmann::json record) {
  record.erase("seconds");
  for (const char* of_the_run :
       {"command_line", "machine", "build", "cpu", "line_sha256"})
    record.erase(of_the_run);
  if (record.contains("details"))
    for (const char* time : {"upper_seconds", "input_seconds"})
      record["details"].erase(time);
  return record;
}

/// That the program refuses, with this exit code and these words.
inline void expect_refusal(const Outcome& outcome, int code,
                           const std::vector<std::string>& words) {
  EXPECT_EQ(outcome.code, code) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  // what is quoted is quoted once
  for (const char* twice : {"\"\\\"", "'\"", "\"'", "''"})
    EXPECT_EQ(outcome.err.find(twice), std::string::npos) << outcome.err;
  for (const std::string& word : words)
    EXPECT_NE(outcome.err.find(word), std::string::npos)
        << "'" << word << "' is not in: " << outcome.err;
}

}  // namespace lipscope::test
