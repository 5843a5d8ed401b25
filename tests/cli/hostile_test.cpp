// Whatever the program is given, it ends by itself within seconds, says in its
// own words what is wrong, and destroys nothing. The cases are the lines of
// tests/cli/hostile_cases.txt.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/cli/hostile_files.h"
#include "tests/cli/program.h"

namespace lipscope {
namespace hostile_test {

namespace fs = std::filesystem;

struct Case {
  int line = 0;
  bool not_as_root = false;
  int code = 0;
  std::vector<std::string> words;
  std::string arguments;  // as in a shell
};

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == text.npos) return "";
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

std::vector<std::string> parts_of(const std::string& text,
                                  const std::string& by, std::size_t most) {
  std::vector<std::string> parts;
  std::size_t at = 0;
  while (parts.size() + 1 < most) {
    const std::size_t next = text.find(by, at);
    if (next == text.npos) break;
    parts.push_back(trimmed(text.substr(at, next - at)));
    at = next + by.size();
  }
  parts.push_back(trimmed(text.substr(at)));
  return parts;
}

std::vector<Case> cases_in(const fs::path& table) {
  std::vector<Case> cases;
  std::ifstream file(table);
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.empty() || line.starts_with('#')) continue;
    const std::vector<std::string> columns = parts_of(line, " | ", 3);
    if (columns.size() != 3)
      throw std::runtime_error("line " + std::to_string(number) + ": " + line);
    Case c{.line = number, .arguments = columns[2]};
    std::istringstream code(columns[0]);
    code >> c.code;
    std::string only;
    c.not_as_root = code >> only && only == "user";
    if (columns[1] != "-") c.words = parts_of(columns[1], " & ", 99);
    cases.push_back(std::move(c));
  }
  return cases;
}

constexpr auto longest = std::chrono::seconds(30);
constexpr rlim_t most_memory = rlim_t{4} << 30;

struct Ended {
  bool in_time = true;
  int status = 0;
  std::string out, err;
};

// the shadow that the address sanitizer keeps of the memory is far larger than
// any limit on it
#ifdef __SANITIZE_ADDRESS__
constexpr bool limited = false;
#else
constexpr bool limited = true;
#endif

// whether the program must refuse it because of the limit
bool about_memory(const Case& c) {
  return std::find(c.words.begin(), c.words.end(), "needs about") !=
         c.words.end();
}

// in the folder, under a limit on memory, and not for ever
Ended ended(const std::string& arguments, const fs::path& folder,
            const test::Folder& scratch) {
  const std::string command =
      "exec " + std::string(LIPSCOPE_PROGRAM) + " " + arguments;
  const std::string out = scratch / "out", err = scratch / "err";
  const pid_t child = test::fork_process();
  if (child == 0) {
    setpgid(0, 0);
    const rlimit no_core{0, 0};
    const rlimit limit{most_memory, most_memory};
    if (limited) setrlimit(RLIMIT_AS, &limit);
    setrlimit(RLIMIT_CORE, &no_core);
    if (chdir(folder.c_str()) != 0) _exit(126);
    std::freopen("/dev/null", "r", stdin);
    std::freopen(out.c_str(), "w", stdout);
    std::freopen(err.c_str(), "w", stderr);
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  Ended e;
  const auto until = std::chrono::steady_clock::now() + longest;
  while (waitpid(child, &e.status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > until) {
      e.in_time = false;
      kill(-child, SIGKILL);
      waitpid(child, &e.status, 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  e.out = test::contents(out);
  e.err = test::contents(err);
  return e;
}

bool fit_for_a_terminal(const std::string& text) {
  for (const char c : text)
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') ||
        c == 0x7f)
      return false;
  return true;
}

void expect_as_told(const Case& c, const Ended& e) {
  ASSERT_TRUE(e.in_time) << "it did not end";
  ASSERT_TRUE(WIFEXITED(e.status)) << "signal " << WTERMSIG(e.status);
  EXPECT_EQ(WEXITSTATUS(e.status), c.code) << e.err;
  const std::string said = c.code == 0 ? e.out + e.err : e.err;
  EXPECT_TRUE(c.code == 0 || !e.err.empty());
  for (const std::string& word : c.words)
    EXPECT_NE(said.find(word), said.npos)
        << "'" << word << "' is not in: " << said;
  EXPECT_TRUE(fit_for_a_terminal(e.out + e.err)) << said;
  for (const char* foreign : {"exception", "std::", "[json", "terminate",
                              "filesystem error", "basic_string"})
    EXPECT_EQ(e.err.find(foreign), e.err.npos) << e.err;
}

TEST(HostileCases, EndInTimeWithTheirWordsAndLoseNothing) {
  const std::vector<Case> cases =
      cases_in(fs::path(LIPSCOPE_SOURCE) / "tests/cli/hostile_cases.txt");
  ASSERT_GE(cases.size(), 300u);
  const test::TemporaryFolder folder;
  test::make_hostile_files(folder.path());
  const auto contents = test::hostile::state_of(folder.path(), true);
  const auto before = test::hostile::state_of(folder.path(), false);
  for (const Case& c : cases) {
    if (c.not_as_root && geteuid() == 0) continue;
    if (!limited && about_memory(c)) continue;
    SCOPED_TRACE("line " + std::to_string(c.line) + ": lipscope " +
                 c.arguments);
    fs::create_directory(folder / "out");
    const test::Folder scratch;
    expect_as_told(c, ended(c.arguments, folder.path(), scratch));
    fs::remove_all(folder / "out");
    const auto after = test::hostile::state_of(folder.path(), false);
    if (after == before) continue;
    for (const auto& [name, content] : before)
      EXPECT_TRUE(after.contains(name) && after.at(name) == content)
          << name << " was changed";
    for (const auto& [name, content] : after)
      EXPECT_TRUE(before.contains(name)) << name << " was left behind";
    FAIL() << "the cases after this one would meet other files";
  }
  EXPECT_TRUE(test::hostile::state_of(folder.path(), true) == contents);
}

// What is not the program's own is replaced if that is asked for, and only
// then.
TEST(HostileCases, AreForcedOnlyWhereNothingIsRead) {
  const test::Folder folder;
  const std::string measure =
      "measure --random d=4,heads=1 --length 3 --quiet ";
  for (const auto& [option, name] : {std::pair("--out ", "a.jsonl"),
                                     {"--save-input ", "a.npy"},
                                     {"--save-direction ", "b.npy"}}) {
    const std::string file = folder / name;
    test::write_file(file, "precious\n");
    test::expect_refusal(test::lipscope(measure + option + file), 2,
                         {name, "--force"});
    EXPECT_EQ(test::contents(file), "precious\n");
    EXPECT_EQ(test::lipscope(measure + option + file + " --force").code, 0);
    EXPECT_NE(test::contents(file), "precious\n");
    // its own it replaces, or goes on with, without being told
    EXPECT_EQ(test::lipscope(measure + option + file).code, 0);
  }
  const std::string page = folder / "page.html", records = folder / "a.jsonl";
  const std::string report = "report " + records + " --out " + page;
  test::write_file(page, "<html>precious</html>");
  test::expect_refusal(test::lipscope(report), 2, {"page.html", "--force"});
  EXPECT_EQ(test::lipscope(report + " --force").code, 0);
  EXPECT_EQ(test::lipscope(report).code, 0);
  const std::string kept = test::contents(records);
  test::expect_refusal(
      test::lipscope("report " + records + " --force --out " + records), 2,
      {"is the file that is read"});
  EXPECT_EQ(test::contents(records), kept);
}

}  // namespace hostile_test
}  // namespace lipscope
