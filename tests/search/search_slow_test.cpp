#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/core/rng.h"
#include "lipscope/search/search.h"
#include "tests/theory/cases.h"

namespace lipscope {
namespace {

// L2 attention of one number a token and weights 1
AttentionWeights kim_layer() {
  AttentionWeights w;
  w.query = test::scalar(1);
  w.value = test::scalar(1);
  return w;
}

// Kim21's protocol: gradient ascent on the inf-norm, 50 restarts. The values
// are those of theory.md, found independently of this program.
TEST(Search, ReachesTheBestKnownInputsOfL2Attention) {
  struct Known {
    Index n;
    double best;
  };
  for (const Known k : {Known{3, 2.29224}, Known{5, 3.10779}, Known{9, 4.20459},
                        Known{21, 6.05030}, Known{51, 8.26241}}) {
    const SearchResult r =
        search(kim_layer(), {.kind = Kind::l2, .threads = 1}, everywhere(),
               {.norm = JacobianNorm::inf, .n = k.n, .restarts = 50});
    EXPECT_NEAR(r.best.value, k.best, 1e-5 * k.best) << "n = " << k.n;
    EXPECT_TRUE(r.best.converged);
    RecordProperty("n" + std::to_string(k.n), std::to_string(r.best.value));
    fmt::print("n {} best {:.6f} from {} ({} evaluations)\n", k.n, r.best.value,
               r.best.start, r.evaluations);
  }
}

TEST(Search, IsAboveTheClosedFormAtAHundredTokens) {
  const SearchResult r =
      search(kim_layer(), {.kind = Kind::l2, .threads = 1}, everywhere(),
             {.norm = JacobianNorm::inf, .n = 101, .restarts = 4});
  fmt::print("n 101 best {:.6f} from {} ({} evaluations)\n", r.best.value,
             r.best.start, r.evaluations);
  EXPECT_GE(r.best.value, 10.0938);
}

}  // namespace
}  // namespace lipscope
