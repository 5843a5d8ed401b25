#include "lipscope/io/journal.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <string>

#include "lipscope/core/errors.h"
#include "lipscope/core/rng.h"
#include "tests/io/test_files.h"

namespace lipscope {
namespace journal_test {

using nlohmann::ordered_json;
using Mode = Journal::Mode;

const std::string two = "{\"i\":0}\n{\"i\":1}\n";

class JournalTest : public testing::Test {
 protected:
  std::string content() const { return test::read_file(path); }

  // opens a file of this content, and gives back what is left of it
  std::string opened(const std::string& before, Mode mode) const {
    test::write_file(path, before);
    Journal journal(path, mode);
    return content();
  }

  // what is said on opening a file of this content, which must survive
  std::string refusal(const std::string& before) const {
    test::write_file(path, before);
    std::string message;
    for (const Mode mode : {Mode::append, Mode::resume}) {
      message = test::message_of<InputError>([&] { Journal(path, mode); });
      EXPECT_EQ(content(), before);
    }
    return message;
  }

  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder / "run.jsonl";
};

TEST_F(JournalTest, StartsEmptyAndHoldsOneLineForEachRecord) {
  Journal journal(path, Mode::append);
  EXPECT_EQ(content(), "");
  journal.append({{"b", 1}, {"a", "two\nlines"}});
  journal.append({{"x", 0.1}});
  EXPECT_EQ(content(), "{\"b\":1,\"a\":\"two\\nlines\"}\n{\"x\":0.1}\n");
}

TEST_F(JournalTest, AppendsBehindWhatIsThere) {
  test::write_file(path, two);
  Journal(path, Mode::append).append({{"i", 2}});
  EXPECT_EQ(content(), two + "{\"i\":2}\n");
}

TEST_F(JournalTest, GivesBackItsRecordsToResume) {
  test::write_file(path, two);
  const Journal journal(path, Mode::resume);
  ASSERT_EQ(journal.records().size(), 2u);
  EXPECT_EQ(journal.records()[0], ordered_json({{"i", 0}}));
  EXPECT_EQ(journal.records()[1], ordered_json({{"i", 1}}));
}

TEST_F(JournalTest, CutsOffATornLastLineInBothModes) {
  for (const Mode mode : {Mode::append, Mode::resume})
    for (const std::string torn :
         {"{", "{\"i\":2", "{\"i\":2\n", "{\"text\":\"\xc3", "{\"i\":2,}\n"})
      EXPECT_EQ(opened(two + torn, mode), two) << torn;
}

TEST_F(JournalTest, CutsOffZerosThatAPowerCutLeft) {
  const std::string zeros(300, '\0');
  EXPECT_EQ(opened(two + zeros, Mode::resume), two);
  EXPECT_EQ(opened(two + "{\"i\":2}" + zeros, Mode::resume), two);
}

TEST_F(JournalTest, CutsOffATornFirstRecord) {
  EXPECT_EQ(opened("{\"i\":", Mode::append), "");
}

TEST_F(JournalTest, NeverGluesARecordOntoATornOne) {
  test::write_file(path, two + "{\"i\":");
  Journal(path, Mode::append).append({{"i", 2}});
  EXPECT_EQ(content(), two + "{\"i\":2}\n");
}

TEST_F(JournalTest, EndsAWholeLineThatLacksOnlyItsNewline) {
  test::write_file(path, two + "{\"i\":2}");
  {
    Journal journal(path, Mode::resume);
    EXPECT_EQ(journal.records().size(), 3u);
    journal.append({{"i", 3}});
  }
  EXPECT_EQ(content(), two + "{\"i\":2}\n{\"i\":3}\n");
}

TEST_F(JournalTest, RefusesABadLineInTheMiddleByItsNumber) {
  EXPECT_TRUE(test::says(refusal("{\"i\":0}\n{\"i\":\n{\"i\":2}\n"),
                         {"run.jsonl", "line 2"}));
  EXPECT_TRUE(test::says(refusal("{\"i\":0}\n\n{\"i\":2}\n{\"i\":3"),
                         {"run.jsonl", "line 2"}));
  EXPECT_TRUE(test::says(refusal("{\"i\":0}\n{\"i\":1}{\"i\":2}\n{\"i\":3}\n"),
                         {"run.jsonl", "line 2"}));
}

TEST_F(JournalTest, LeavesFilesAloneThatAreNotJournals) {
  for (const std::string other :
       {"precious", "precious\n", "\n", "[1, 2]", "[1, 2]\n", "3\n",
        "{\n  \"pretty\": 1\n}\n", "a,b\n1,2\n", "\x89PNG\r\n\x1a\n"})
    EXPECT_TRUE(test::says(refusal(other), {"line 1"})) << other;
  // JSON, but no record: not torn either
  EXPECT_TRUE(test::says(refusal(two + "[3]\n"), {"line 3"}));
}

TEST_F(JournalTest, DoesNotEmptyAJsonFileOfOneLine) {
  // a minified config.json, given by mistake, would have been a torn record
  EXPECT_EQ(opened("{\"model_type\":\"gpt2\"}", Mode::append),
            "{\"model_type\":\"gpt2\"}\n");
}

// whoever takes such a value apart recurses into it, and ends by a signal
TEST_F(JournalTest, RefusesALineNestedVeryDeep) {
  const std::string deep = "{\"i\":" + std::string(100'000, '[');
  const std::string whole = deep + std::string(100'000, ']') + "}\n";
  for (const std::string& line :
       {deep, whole, std::string(100'000, '['), std::string(65, '[') + "\n"})
    EXPECT_TRUE(test::says(refusal(two + line), {"line 3", "nested", "64"}));
  const std::string bearable =
      "{\"i\":" + std::string(63, '[') + std::string(63, ']') + "}\n";
  EXPECT_EQ(opened(two + bearable, Mode::resume), two + bearable);
}

TEST_F(JournalTest, DoesNotCutOffALastLineThatNeverWasARecord) {
  for (const std::string other : {"notes", "notes\n", "[1, 2", "  {\"i\":"})
    EXPECT_TRUE(test::says(refusal(two + other), {"line 3"})) << other;
}

TEST_F(JournalTest, NamesTheLineThatACheckRefuses) {
  test::write_file(path, two);
  const auto check = [](const ordered_json& record) {
    if (record["i"] == 1) throw InputError("no good");
  };
  EXPECT_TRUE(test::says(
      test::message_of<InputError>([&] { Journal(path, Mode::resume, check); }),
      {"run.jsonl: line 2: no good"}));
  EXPECT_TRUE(test::says(
      test::message_of<InputError>([&] { read_journal(path, check); }),
      {"run.jsonl: line 2: no good"}));
  EXPECT_NO_THROW(Journal(path, Mode::append, check));
}

TEST_F(JournalTest, RefusesToShareItsFile) {
  {
    const Journal journal(path, Mode::append);
    EXPECT_TRUE(test::says(
        test::message_of<InputError>([&] { Journal(path, Mode::resume); }),
        {"run.jsonl", "another run"}));
  }
  EXPECT_NO_THROW(Journal(path, Mode::resume));
}

TEST_F(JournalTest, RefusesAFolderThatIsNotThere) {
  EXPECT_TRUE(test::says(test::message_of<InputError>([&] {
                           Journal(folder / "absent/run.jsonl", Mode::append);
                         }),
                         {"absent/run.jsonl", "No such file or directory"}));
  EXPECT_THROW(Journal(folder.path(), Mode::append), InputError);
}

TEST_F(JournalTest, RefusesARecordThatIsNoObject) {
  Journal journal(path, Mode::append);
  EXPECT_THROW(journal.append(3), std::invalid_argument);
  EXPECT_EQ(content(), "");
}

TEST_F(JournalTest, WritesANumberThatIsNotFiniteAsNull) {
  Journal(path, Mode::append).append({{"x", std::nan("")}});
  EXPECT_EQ(content(), "{\"x\":null}\n");
}

TEST_F(JournalTest, KeepsARecordWhoseTextIsNotUtf8) {
  Journal(path, Mode::append).append({{"x", "caf\xe9"}});
  EXPECT_EQ(content(), "{\"x\":\"caf\xef\xbf\xbd\"}\n");
}

TEST_F(JournalTest, ReportsAFullDisk) {
  Journal journal("/dev/full", Mode::resume);
  EXPECT_TRUE(journal.records().empty());
  EXPECT_TRUE(test::says(test::message_of<RunError>([&] {
                           journal.append({{"i", 0}});
                         }),
                         {"/dev/full", "No space left on device"}));
}

TEST_F(JournalTest, WritesToADeviceThatSeveralRunsShare) {
  Journal first("/dev/null", Mode::append), second("/dev/null", Mode::append);
  EXPECT_NO_THROW(first.append({{"i", 0}}));
  EXPECT_NO_THROW(second.append({{"i", 0}}));
}

TEST_F(JournalTest, TakesBackARecordThatDidNotFit) {
  test::write_file(path, two);
  Journal journal(path, Mode::append);
  const ordered_json large = {{"x", std::string(100, 'x')}};
  std::string message;
  {
    const test::FileSizeLimit limit(two.size() + 10);
    try {
      journal.append(large);
    } catch (const RunError& error) {
      message = error.what();
    }
  }
  EXPECT_TRUE(test::says(message, {"run.jsonl", "File too large"}));
  EXPECT_EQ(content(), two);
  // room again: the journal goes on where it was
  journal.append({{"i", 2}});
  EXPECT_EQ(content(), two + "{\"i\":2}\n");
}

TEST_F(JournalTest, CutsOffTheRecordThatAKilledRunWasWriting) {
  test::write_file(path, two);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // the write that reaches the limit is partial, and SIGXFSZ meets the next
    signal(SIGXFSZ, SIG_DFL);
    const rlimit no_core{0, 0}, limit{two.size() + 10, RLIM_INFINITY};
    setrlimit(RLIMIT_CORE, &no_core);
    setrlimit(RLIMIT_FSIZE, &limit);
    Journal(path, Mode::append).append({{"x", std::string(100, 'x')}});
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_EQ(content(), two + "{\"x\":\"xxxx");
  Journal(path, Mode::resume).append({{"i", 2}});
  EXPECT_EQ(content(), two + "{\"i\":2}\n");
}

TEST_F(JournalTest, NoKillLosesOrTearsARecord) {
  // long lines, so that a kill has a chance to land within a write
  const std::string padding(1 << 19, 'x');
  Rng rng(5);
  std::size_t before = 0;
  for (int kill_number = 0; kill_number < 20; ++kill_number) {
    int acknowledged[2];
    ASSERT_EQ(pipe(acknowledged), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      try {
        Journal journal(path, Mode::resume);
        for (std::size_t i = journal.records().size();; ++i) {
          journal.append({{"i", i}, {"padding", padding}});
          if (write(acknowledged[1], "+", 1) != 1) _exit(1);
        }
      } catch (...) {
        _exit(1);
      }
    }
    close(acknowledged[1]);
    std::size_t returned = 0;
    char plus;
    // every other kill comes after a record, however slow the machine is
    if (kill_number % 2 == 1 && read(acknowledged[0], &plus, 1) == 1)
      ++returned;
    usleep(static_cast<useconds_t>(1000 + rng.uniform() * 30000));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    while (read(acknowledged[0], &plus, 1) == 1) ++returned;
    close(acknowledged[0]);

    const Journal journal(path, Mode::resume);
    const std::vector<ordered_json>& records = journal.records();
    for (std::size_t i = 0; i < records.size(); ++i)
      ASSERT_EQ(records[i].at("i"), i);
    // what append returned from is there; at most one more was under way
    EXPECT_GE(records.size(), before + returned);
    EXPECT_LE(records.size(), before + returned + 1);
    before = records.size();
  }
  EXPECT_GT(before, 0u);
}

// what read_journal hands over
std::vector<ordered_json> read_all(const std::filesystem::path& path) {
  std::vector<ordered_json> records;
  read_journal(path, [&](ordered_json r) { records.push_back(std::move(r)); });
  return records;
}

TEST_F(JournalTest, IsReadWithoutBeingTouchedEvenWhileItIsWritten) {
  Journal journal(path, Mode::append);
  journal.append({{"i", 0}});
  EXPECT_EQ(read_all(path), (std::vector<ordered_json>{{{"i", 0}}}));
  const std::string torn = two + "{\"i\":";
  test::write_file(path, torn);
  EXPECT_EQ(read_all(path).size(), 2u);
  EXPECT_EQ(content(), torn);
}

TEST_F(JournalTest, IsNotReadWhereItIsNone) {
  EXPECT_THROW(read_all(folder / "absent"), InputError);
  test::write_file(path, "{}\nnonsense\n{}\n");
  const std::string message =
      test::message_of<InputError>([&] { read_all(path); });
  EXPECT_NE(message.find("line 2"), message.npos) << message;
}

}  // namespace journal_test
}  // namespace lipscope
