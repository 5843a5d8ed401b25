// More than a thousand positions of trained models: no attack is nearer than
// what is proved, and what is proved is of some use.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/cli/program.h"

namespace lipscope::test {
namespace certify_slow_test {

TEST(CertifySlow, NoAttackIsNearerThanAThousandRadii) {
  const Folder folder;
  {
    std::ofstream text(folder / "text.txt");
    const char* const places[] = {"the hill", "a mill", "the old town"};
    for (int i = 0; i < 700; ++i)
      text << "a river runs by " << places[(i * i + i / 3) % 3]
           << (i % 4 == 0 ? " and on to the sea. " : ". ");
  }
  const struct {
    const char *name, *model;
    int positions;
    double closest;  // at least this share of an attack is proved somewhere
  } models[] = {{"l2", "l2 --norm none", 1000, 1e-3},
                {"dot", "dot --norm post", 300, 1e-6},
                {"pre", "contractive-l2 --norm pre", 300, 1e-3}};
  for (const auto& [name, model, positions, closest] : models) {
    ASSERT_EQ(lipscope("train " + (folder / "text.txt") + " --out " +
                       (folder / name) + " --model " + model +
                       " --layers 2 --width 16 --heads 2 --context 32 "
                       "--mlp-width 32 --batch 8 --steps 150 --eval-every 150 "
                       "--lr 0.005 --measure 0 --threads 2 --quiet")
                  .code,
              0);
    const Outcome o =
        lipscope("certify " + (folder / name) + " --text " +
                 (folder / "text.txt") + " --split test --positions " +
                 std::to_string(positions) + " --threads 2 --json --quiet");
    ASSERT_EQ(o.code, 0) << name << ": " << o.err;
    const auto records = json_lines(o.out);
    ASSERT_EQ(records.size(), static_cast<std::size_t>(positions));
    double best = 0.0;
    for (const auto& r : records) {
      ASSERT_TRUE(r["upper"].is_number()) << r;
      ASSERT_LE(r["lower"].get<double>(), r["upper"].get<double>()) << r;
      best =
          std::max(best, r["lower"].get<double>() / r["upper"].get<double>());
    }
    std::printf("%s: at most %.2g of an attack is proved\n", name, best);
    EXPECT_GT(best, closest) << name;
  }
}

}  // namespace certify_slow_test
}  // namespace lipscope::test
