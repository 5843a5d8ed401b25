// The families of the campaign that one can choose: which problems they have,
// and that a journal goes on with the same ones.

#include <gtest/gtest.h>

#include "lipscope/core/errors.h"
#include "tests/campaign/tally.h"
#include "tests/cli/program.h"

namespace lipscope {
namespace families_test {

using campaign::draw_cases;
using campaign::examine;
using campaign::Examined;
using campaign::Families;
using campaign::families_named;
using campaign::Tally;

TEST(CampaignFamilies, AreTakenInTurnAsOftenAsTheyAreNamed) {
  const auto listed = families_named("attention,many,many");
  ASSERT_EQ(listed.size(), 3u);
  for (const std::uint64_t number : {0u, 1u, 2u, 30u, 31u, 32u}) {
    const char* const name = number % 3 == 0 ? "attention" : "many";
    const auto drawn = draw_cases(7, number, listed);
    const auto alone = draw_cases(7, number, families_named(name));
    ASSERT_EQ(drawn.size(), 1u);
    EXPECT_EQ(drawn[0].what, alone[0].what);
    EXPECT_EQ(drawn[0].x, alone[0].x);
    EXPECT_GE(drawn[0].x.rows(), number % 3 == 0 ? 1 : 10);
    EXPECT_LE(drawn[0].x.rows(), 65);
  }
  // the usual campaign has the same problems
  EXPECT_EQ(draw_cases(7, 32)[0].x,
            draw_cases(7, 32, families_named("attention"))[0].x);
  EXPECT_EQ(draw_cases(7, 28)[0].x,
            draw_cases(7, 28, families_named("layer"))[0].x);
  EXPECT_TRUE(families_named("").empty());
  try {
    families_named("many,few");
    FAIL() << "there is no family of this name";
  } catch (const InputError& e) {
    const std::string what = e.what();
    EXPECT_NE(what.find("few"), what.npos) << what;
    EXPECT_NE(what.find("proved-layer"), what.npos) << what;
  }
}

TEST(CampaignFamilies, InputsThatTheLibraryRefusesAreCountedAndNotCompared) {
  // q/k-norm with an ε that lets scores of 10⁶ and more be lost
  const Examined found = examine(41, 63);
  EXPECT_GE(found.refused, 1u);
  Tally tally;
  tally.add(found.claims, 63);
  EXPECT_TRUE(tally.violations().empty());
}

test::Outcome program(const std::string& arguments) {
  return test::run_program(LIPSCOPE_CAMPAIGN, arguments);
}

TEST(CampaignFamilies, GoesOnWithTheSameFamiliesAlone) {
  const test::Folder folder;
  const std::string out = folder / "many.jsonl", usual = folder / "usual.jsonl";
  const std::string rest = " --chunk 20 --seed 7 --out ";
  ASSERT_EQ(
      program("--families many,proved-layer --cases 40" + rest + out).code, 0);
  for (const std::string other :
       {"", "--families many ", "--families proved-layer,many "}) {
    const test::Outcome run = program(other + "--cases 80" + rest + out);
    EXPECT_EQ(run.code, 2) << other;
    EXPECT_NE(run.err.find("families many,proved-layer"), std::string::npos)
        << run.err;
  }
  const test::Outcome on =
      program("--families many,proved-layer --cases 80" + rest + out);
  EXPECT_EQ(on.code, 0) << on.err;
  EXPECT_NE(on.out.find("80 cases"), std::string::npos) << on.out;
  // one that began without a list
  ASSERT_EQ(program("--cases 20" + rest + usual).code, 0);
  const test::Outcome listed =
      program("--families many --cases 40" + rest + usual);
  EXPECT_EQ(listed.code, 2);
  EXPECT_NE(listed.err.find("the usual families"), std::string::npos)
      << listed.err;
  EXPECT_EQ(program("--families few --cases 40" + rest + usual).code, 2);
}

}  // namespace families_test
}  // namespace lipscope
