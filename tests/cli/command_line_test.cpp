// What the program says of its own command line: slips, help, completion.

#include <algorithm>

#include "lipscope/report/wrap.h"
#include "tests/cli/terminal.h"

namespace lipscope {
namespace command_line_test {

using test::expect_refusal;
using test::Folder;
using test::lines_of;
using test::on_terminal;
using test::Outcome;
using test::Screen;
using test::Terminal;

const std::vector<std::string> commands = {
    "measure", "bound",   "search", "meanfield", "invert",    "train", "eval",
    "sample",  "certify", "report", "compare",   "reproduce", "doctor"};

TEST(CommandLine, SuggestsTheNearestCommandOptionAndWord) {
  expect_refusal(test::lipscope("mesure"), 2,
                 {"unknown command 'mesure'; did you mean measure? 'lipscope"});
  expect_refusal(test::lipscope("wobble"), 2,
                 {"unknown command 'wobble'; 'lipscope --help'"});
  expect_refusal(test::lipscope(""), 2, {"no command", "lipscope --help"});
  expect_refusal(test::lipscope("measure --random d=4,heads=1 --lenght 4"), 2,
                 {"measure: unknown option '--lenght'; did you mean --length?",
                  "lipscope measure --help"});
  expect_refusal(test::lipscope("train t.txt --out m --modle=dot"), 2,
                 {"unknown option '--modle'; did you mean --model?"});
  expect_refusal(test::lipscope("measure m --dtype f23"), 2,
                 {"--dtype", "'f23' is none of f32, f64; did you mean f32?"});
  expect_refusal(test::lipscope("train t.txt --out m --model l2-untide"), 2,
                 {"--model", "did you mean l2-untied?"});
  expect_refusal(test::lipscope("measure --random d=4,heads=1 --kind cosin"), 2,
                 {"--kind cosin", "did you mean cosine?"});
  expect_refusal(test::lipscope("reproduce kim-tigthness"), 2,
                 {"did you mean kim-tightness?"});
  expect_refusal(test::lipscope("measure --random d=4,heads=1 --sort lowr"), 2,
                 {"--sort", "did you mean lower?"});
}

TEST_F(Terminal, HelpFitsShowsExamplesFirstAndSpeaksPlainly) {
  for (const unsigned short columns : {80, 120})
    for (const std::string& command : commands) {
      SCOPED_TRACE(command);
      const Screen screen = on_terminal(columns, command + " --help");
      EXPECT_EQ(screen.code, 0);
      std::string all;
      for (const std::string& line : lines_of(screen)) {
        EXPECT_LE(display_width(line), columns) << line;
        all += line + "\n";
      }
      EXPECT_EQ(all.rfind("Usage: lipscope " + command, 0), 0u) << all;
      if (command != "doctor") {
        EXPECT_LT(all.find("Examples:\n  lipscope "), all.find("-h, --help"))
            << all;
        EXPECT_LT(all.find("\n  lipscope " + command), all.find("-h, --help"))
            << all;
      }
      for (const std::string noise :
           {"922337203", "1073741824", " in [", "INT", "FLOAT",
            "TEXT:", "Excludes", "Needs", "KiB", "{"})
        EXPECT_EQ(all.find(noise), std::string::npos) << noise << "\n" << all;
    }
  const std::string help = test::lipscope("measure --help").out;
  for (const std::string words : {"0 to 4096", "default: 1e-06", "default: f32",
                                  "default: attn", "above 0"})
    EXPECT_NE(help.find(words), std::string::npos) << words << "\n" << help;
  const std::string all = test::lipscope("--help").out;
  for (const std::string& command : commands)
    EXPECT_NE(all.find("\n  " + command + " "), std::string::npos) << all;
  EXPECT_EQ(all.find("completion"), std::string::npos);
}

// what bash offers after these words, the last of which is being typed
std::vector<std::string> completed(const std::string& words) {
  const Folder folder;
  std::ofstream(folder / "script") << test::lipscope("completion bash").out;
  std::ofstream(folder / "ask")
      << "source " << folder / "script"
      << "\n"
      << "COMP_WORDS=(lipscope " << words << ")\n"
      << "COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_lipscope\n"
      << "printf '%s\\n' \"${COMPREPLY[@]}\" > " << folder / "reply"
      << "\n";
  EXPECT_EQ(std::system(("cd " + (folder / ".") + " && bash --norc " +
                         (folder / "ask") + " 2> " + (folder / "err"))
                            .c_str()),
            0);
  EXPECT_EQ(test::contents(folder / "err"), "");
  std::vector<std::string> offered;
  std::istringstream lines(test::contents(folder / "reply"));
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) offered.push_back(line);
  std::sort(offered.begin(), offered.end());
  return offered;
}

TEST(Completion, OffersCommandsOptionsWordsAndFiles) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(completed("mea"), Words({"meanfield", "measure"}));
  EXPECT_EQ(completed("measure --len"), Words({"--length", "--lengths"}));
  EXPECT_EQ(completed("measure --dtype f"), Words({"f32", "f64"}));
  EXPECT_EQ(completed("measure --kind l"), Words({"l2", "l2-untied"}));
  EXPECT_EQ(completed("train --model c"), Words({"contractive-l2"}));
  EXPECT_EQ(completed("measure --sort lo"), Words({"lower", "lower_by"}));
  EXPECT_EQ(completed("reproduce kim-t"), Words({"kim-tightness"}));
  EXPECT_EQ(completed("measure --text scr"), Words({"script"}));
  EXPECT_EQ(completed("measure --seed 1"), Words());
  EXPECT_EQ(completed("report scr"), Words({"script"}));
  expect_refusal(test::lipscope("completion fish"), 2, {"bash or zsh"});
}

TEST(Completion, KnowsEveryCommandInBothShells) {
  for (const std::string shell : {"bash", "zsh"}) {
    const Outcome o = test::lipscope("completion " + shell);
    EXPECT_EQ(o.code, 0) << o.err;
    for (const std::string& command : commands)
      EXPECT_NE(o.out.find(command), std::string::npos) << command;
    const Folder folder;
    std::ofstream(folder / "script") << o.out;
    if (std::system(("command -v " + shell + " > /dev/null").c_str()) != 0) {
      std::printf("%s is not here: its script is not checked\n", shell.c_str());
      continue;
    }
    EXPECT_EQ(std::system((shell + " -n " + (folder / "script")).c_str()), 0);
  }
}

}  // namespace command_line_test
}  // namespace lipscope
