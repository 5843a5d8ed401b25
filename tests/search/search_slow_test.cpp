#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "lipscope/attention/dense.h"
#include "lipscope/core/rng.h"
#include "lipscope/model/layer.h"
#include "lipscope/search/search.h"
#include "lipscope/theory/layer_bounds.h"
#include "tests/support/shared_files.h"
#include "tests/theory/cases.h"

namespace lipscope {
namespace search_slow_test {

// L2 attention of one number a token and weights 1
AttentionWeights kim_layer() {
  AttentionWeights w;
  w.query = test::scalar(1);
  w.value = test::scalar(1);
  return w;
}

// Kim21's protocol: gradient ascent on the inf-norm, 50 restarts. The values
// were found by another program.
TEST(Search, ReachesTheBestKnownInputsOfL2Attention) {
  struct Known {
    Index n;
    double best;
  };
  for (const Known k : {Known{3, 2.29224}, Known{5, 3.10779}, Known{9, 4.20459},
                        Known{21, 6.05030}, Known{51, 8.26241}}) {
    const SearchResult r =
        search(kim_layer(), {.kind = Kind::l2, .threads = 1}, everywhere(),
               {.norm = Norm::inf, .n = k.n, .restarts = 50});
    EXPECT_NEAR(r.best.value, k.best, 1e-5 * k.best) << "n = " << k.n;
    EXPECT_TRUE(r.best.converged);
  }
}

TEST(Search, IsAboveTheClosedFormAtAHundredTokens) {
  const SearchResult r =
      search(kim_layer(), {.kind = Kind::l2, .threads = 1}, everywhere(),
             {.norm = Norm::inf, .n = 101, .restarts = 4});
  EXPECT_GE(r.best.value, 10.0938);
}

// every kind, mask and norm, biases, norm layers: what is found stays below
// what is proved, and above every construction
TEST(Search, StaysBetweenTheConstructionsAndTheBounds) {
  int bounded = 0;
  for (const Kind kind : all_kinds)
    for (std::uint64_t seed = 0; seed < 24; ++seed) {
      const test::Trial t = test::trial(kind, seed);
      const Index d = t.weights.features(), n = 2 + seed % 5;
      const double R = 0.5 + static_cast<double>(seed % 3);
      std::optional<NormWeights> norm;
      if (seed % 4 == 3)
        norm =
            NormWeights{.gain = flatten(gaussian(1, d, Rng(seed).split(30))),
                        .bias = flatten(gaussian(1, d, Rng(seed).split(31)))};
      const Region region = norm ? after_norm(*norm) : ball(R);
      BoundSetting q = test::setting_of(t, norm ? norm_layer_radius(*norm) : R);
      q.n = n;
      q.norm = norm;
      const std::vector<Bound> above = bounds(t.weights, q);
      for (const Norm in : {Norm::two, Norm::inf, Norm::token}) {
        const SearchResult r = search(t.weights, t.options, region,
                                      {.norm = in,
                                       .n = n,
                                       .restarts = 2,
                                       .max_evaluations = 60,
                                       .seed = seed});
        const std::string what = name_of(kind) + " norm " + name_of(in) +
                                 " seed " + std::to_string(seed);
        // in the region, and what it says of itself
        const Matrix& x = r.best.x;
        EXPECT_LT((tokens_of(region, coordinates_of(region, x)) - x).norm(),
                  1e-9 * (1 + x.norm()))
            << what;
        for (const Found& f : r.all) EXPECT_LE(f.value, r.best.value) << what;
        if (in != Norm::token) {
          for (const Construction& c :
               constructions(t.weights, t.options, region, n))
            EXPECT_GE(r.best.value * (1 + 1e-9),
                      test::measured(dense_jacobian(t.weights, t.options, c.x),
                                     in, n, Rng(1)))
                << what << ", " << c.name;
        }
        const std::optional<Bound> best = best_bound(above, in);
        if (!best) continue;
        ++bounded;
        EXPECT_LE(r.best.value, best->value) << what << ", " << best->name;
      }
    }
  EXPECT_GT(bounded, 100);
}

// the largest layer norm radius of a real head: hard attention, where most
// inputs are flat
TEST(Search, FindsSteepInputsOfAPretrainedHead) {
  const auto shared = test::shared_folder();
  if (!shared ||
      !std::filesystem::exists(*shared / "models/gpt2-124M-attention-only"))
    GTEST_SKIP() << "no GPT-2";
  const Model model =
      load_model((*shared / "models/gpt2-124M-attention-only").string());
  const LayerWeights layer = load_layer(model, 5, MapName::attn);
  const NormWeights norm =
      load_norm(model, *layer_modules(model.config, 5).attention_norm);
  const AttentionOptions options =
      attention_options(layer, true, {.heads = {3}, .threads = 1});
  const SearchResult r =
      search(layer.attention, options, after_norm(norm),
             {.n = 48, .restarts = 1, .max_evaluations = 40});
  const auto above = attention_bounds(layer, true, {.heads = {3}}, 48,
                                      {norm_layer_radius(norm), norm});
  const double best = best_bound(above, Norm::two)->value;
  EXPECT_LE(r.best.value, best);
  EXPECT_GE(r.best.value, best / 4);
  EXPECT_LE(r.best.residual, 1e-5);
}

}  // namespace search_slow_test
}  // namespace lipscope
