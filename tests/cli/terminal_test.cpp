// The program on a terminal: what fits, what a bar leaves behind, Ctrl-C.

#include "tests/cli/terminal.h"

#include <algorithm>

#include "lipscope/report/wrap.h"

namespace lipscope {
namespace terminal_test {

using test::Folder;
using test::json_lines;
using test::lines_of;
using test::on_terminal;
using test::Outcome;
using test::Screen;
using test::Terminal;

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// no line is longer than the terminal is wide, so that it cuts no word
void expect_fits(const Screen& screen, std::size_t columns) {
  for (const std::string& line : lines_of(screen))
    EXPECT_LE(display_width(line), columns) << line;
}

const std::vector<std::string>& typical_runs() {
  static const std::vector<std::string> runs = {
      "measure --random d=16,heads=2 --lengths 4,8,12,16 --heads each",
      "measure --random d=12,heads=3 --length 9 --norm inf",
      "bound --random d=16,heads=2 --lengths 8,64 --radius 4",
      "bound --random d=16,heads=2 --length 8",
      "search --random d=3,heads=1,scale=1 --length 3 --radius 1 --restarts 1 "
      "--max-evaluations 30",
      "meanfield --random d=4,heads=1,scale=1 --length 4 --duplicate 2",
      "invert --random d=4,heads=1,scale=1 --length 4 --log-det",
      "reproduce mass-splitting",
      "reproduce dot-product-unbounded",
      "reproduce list",
      "doctor"};
  return runs;
}

TEST_F(Terminal, NothingIsWiderThanTheTerminal) {
  for (const unsigned short columns : {80, 120})
    for (const std::string& run : typical_runs()) {
      SCOPED_TRACE(run);
      const Screen screen = on_terminal(columns, run);
      EXPECT_EQ(screen.code, 0) << screen.text;
      EXPECT_GT(lines_of(screen).size(), 2u);
      expect_fits(screen, columns);
    }
}

TEST_F(Terminal, NarrowTablesSayWhatTheyLeaveOut) {
  const std::string run = "measure --random d=16,heads=2 --length 4 --quiet";
  const std::string narrow = joined(lines_of(on_terminal(80, run)));
  EXPECT_NE(narrow.find("(not shown: "), std::string::npos) << narrow;
  EXPECT_EQ(narrow.find("seconds "), std::string::npos) << narrow;
  EXPECT_NE(narrow.find("lower"), std::string::npos);
  const std::string wide = joined(lines_of(on_terminal(80, run + " --wide")));
  EXPECT_EQ(wide.find("not shown"), std::string::npos) << wide;
  EXPECT_NE(wide.find("residual"), std::string::npos) << wide;
  // a pipe has no width, unless it is said
  EXPECT_NE(test::lipscope(run).out.find("residual"), std::string::npos);
  setenv("COLUMNS", "60", 1);
  const Outcome told = test::lipscope(run);
  unsetenv("COLUMNS");
  EXPECT_EQ(told.out.find("residual  "), std::string::npos) << told.out;
  EXPECT_NE(told.out.find("(not shown: "), std::string::npos);
}

TEST_F(Terminal, TheBarIsGoneWhereARowOfTrainStands) {
  const Folder folder;
  std::ofstream text(folder / "text");
  for (int i = 0; i < 400; ++i) text << "the cat sat on the mat. ";
  text.close();
  const Screen screen = on_terminal(
      100, "train " + (folder / "text") + " --out " + (folder / "m") +
               " --layers 1 --width 8 --heads 2 --context 16 --batch 2 "
               "--steps 60 --eval-every 20");
  ASSERT_EQ(screen.code, 0) << screen.text;
  ASSERT_NE(screen.text.find("/60 nll"), std::string::npos)
      << "no bar was drawn: " << screen.text;
  std::size_t rows = 0;
  for (const std::string& line : lines_of(screen)) {
    EXPECT_EQ(line.find("[#"), std::string::npos) << line;
    EXPECT_EQ(line.find("characters/s"), std::string::npos) << line;
    rows += line.rfind("      20 ", 0) == 0 ||
            line.rfind("      40 ", 0) == 0 || line.rfind("      60 ", 0) == 0;
  }
  EXPECT_EQ(rows, 3u) << screen.text;
  expect_fits(screen, 100);
  const std::string all = joined(lines_of(screen));
  EXPECT_GT(all.rfind("\nAnswer: ") + 1, all.rfind("\n      60 "))
      << "the answer is not the end of " << all;
}

TEST_F(Terminal, ALongMeasurementShowsItsStepAndAnEstimate) {
  const Screen screen = on_terminal(
      120,
      "measure --random d=256,heads=8,scale=0.2 --length 512 --certificate "
      "none --tolerance 1e-12 --max-steps 60");
  ASSERT_EQ(screen.code, 0) << screen.text;
  EXPECT_NE(screen.text.find(" of at most 60"), std::string::npos)
      << screen.text;
  EXPECT_NE(screen.text.find(" s left"), std::string::npos) << screen.text;
}

// all that was printed, as one line
std::string said(const Screen& screen) {
  std::string text;
  for (const std::string& line : lines_of(screen)) text += line + " ";
  return text;
}

std::size_t records_in(const std::string& file) {
  return std::filesystem::exists(file) ? json_lines(test::contents(file)).size()
                                       : 0;
}

// runs it, and presses Ctrl-C as soon as there are so many records
Screen interrupted(const std::string& run, const std::string& out,
                   std::size_t records, int signal = SIGINT) {
  bool sent = false;
  return on_terminal(80, run, [&](const std::string&, pid_t child) {
    if (sent) return;
    // a line may be half there
    const std::string text = test::contents(out);
    if (static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) <
        records)
      return;
    sent = true;
    kill(child, signal);
  });
}

TEST_F(Terminal, CtrlCSaysWhatWasKeptAndTheSameCommandGoesOn) {
  const Folder folder;
  const std::vector<std::string> runs = {
      "measure --random d=16,heads=2,scale=0.5 --lengths 64:600:16 "
      "--certificate none --tolerance 1e-14 --max-steps 150",
      "search --random d=8,heads=2,scale=1 --lengths 4:40:2 --radius 2 "
      "--restarts 4 --budget 0",
      "meanfield --random d=16,heads=2,scale=0.5 --lengths 4:60:2",
      "invert --random d=32,heads=4,scale=0.3 --lengths 8:200:4 --depth 20",
      "reproduce kim-inversion"};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    SCOPED_TRACE(runs[i]);
    const std::string out = folder / (std::to_string(i) + ".jsonl");
    const std::string run = runs[i] + " --out " + out;
    const Screen cut = interrupted(run, out, 2, i == 1 ? SIGTERM : SIGINT);
    EXPECT_EQ(cut.code, 130) << cut.text;
    const std::size_t kept = records_in(out);
    EXPECT_GE(kept, 2u);
    for (const std::string& words :
         {std::string("stopping after this step"), std::string("interrupted"),
          out + " has " + std::to_string(kept) + " records",
          std::string("the same command goes on with --resume")})
      EXPECT_NE(said(cut).find(words), std::string::npos)
          << words << " is not in " << said(cut);
    expect_fits(cut, 80);
    EXPECT_EQ(said(cut).find("Answer"), std::string::npos);
  }
  // and it does: nothing is measured twice, nothing is missing
  const std::string small =
      "measure --random d=16,heads=2,scale=0.5 --lengths 4:200:4 --samples 3 "
      "--certificate none --tolerance 1e-14";
  const std::string whole = folder / "whole.jsonl", parts = folder / "p.jsonl";
  ASSERT_EQ(test::lipscope(small + " --out " + whole).code, 0);
  const Screen cut = interrupted(small + " --out " + parts, parts, 2);
  ASSERT_EQ(cut.code, 130) << cut.text;
  ASSERT_LT(records_in(parts), records_in(whole));
  ASSERT_EQ(test::lipscope(small + " --resume --out " + parts).code, 0);
  const auto a = json_lines(test::contents(whole)),
             b = json_lines(test::contents(parts));
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_EQ(test::without_times(a[i]), test::without_times(b[i])) << i;
}

TEST_F(Terminal, CtrlCWithoutOutSaysThatNothingWasKept) {
  const Screen cut =
      on_terminal(80,
                  "measure --random d=16,heads=2,scale=0.5 --lengths 64:600:16 "
                  "--certificate none --tolerance 1e-14 --max-steps 150",
                  [sent = false](const std::string& text, pid_t child) mutable {
                    if (sent || text.find("step ") == text.npos) return;
                    sent = true;
                    kill(child, SIGINT);
                  });
  EXPECT_EQ(cut.code, 130) << cut.text;
  EXPECT_NE(said(cut).find("nothing was kept; with --out FILE --resume"),
            std::string::npos)
      << said(cut);
}

TEST_F(Terminal, ASecondCtrlCEndsAtOnce) {
  // one product of this takes long; the second signal does not wait for it
  const auto start = std::chrono::steady_clock::now();
  int sent = 0;
  const Screen cut = on_terminal(
      80,
      "measure --random d=512,heads=8,scale=0.3 --length 3000 --threads 1 "
      "--certificate none --max-steps 3000 --tolerance 1e-15",
      [&](const std::string& text, pid_t child) {
        if (sent == 0 && text.find("n = ") != text.npos) {
          ++sent;
          kill(child, SIGINT);
        } else if (sent == 1 && text.find("once more") != text.npos) {
          ++sent;
          kill(child, SIGINT);
        }
      });
  EXPECT_EQ(sent, 2) << cut.text;
  EXPECT_EQ(cut.code, 130) << cut.text;
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST_F(Terminal, TrainGoesOnFromWhereCtrlCStoppedIt) {
  const Folder folder;
  std::ofstream text(folder / "text");
  for (int i = 0; i < 400; ++i) text << "the cat sat on the mat. ";
  text.close();
  const std::string options =
      " --layers 1 --width 8 --heads 2 --context 16 --batch 4 --steps 3000 "
      "--eval-every 1000 --measure 0";
  const auto train = [&](const std::string& name) {
    return "train " + (folder / "text") + " --out " + (folder / name) + options;
  };
  const Screen cut = on_terminal(
      80, train("cut"),
      [sent = false](const std::string& shown, pid_t child) mutable {
        if (sent || shown.find("/3000 nll") == shown.npos) return;
        sent = true;
        kill(child, SIGINT);
      });
  ASSERT_EQ(cut.code, 130) << cut.text;
  EXPECT_NE(said(cut).find("interrupted at step "), std::string::npos)
      << said(cut);
  EXPECT_NE(said(cut).find((folder / "cut") + " has the last checkpoint; the "
                                              "same command goes on with "
                                              "--resume"),
            std::string::npos)
      << said(cut);
  ASSERT_EQ(test::lipscope(train("cut") + " --resume").code, 0);
  ASSERT_EQ(test::lipscope(train("whole")).code, 0);
  EXPECT_EQ(test::contents(folder / "cut/model.safetensors"),
            test::contents(folder / "whole/model.safetensors"));
}

}  // namespace terminal_test
}  // namespace lipscope
