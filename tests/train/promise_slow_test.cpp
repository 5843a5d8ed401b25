// A model that learnt under a promise: no input that a search finds is
// amplified by more than it.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "lipscope/spectral/dense.h"
#include "lipscope/theory/stack_constant.h"
#include "lipscope/train/model_stack.h"
#include "lipscope/train/trainer.h"
#include "tests/support/stack_map.h"
#include "tests/train/small_models.h"

namespace lipscope::test {
namespace promise_slow_test {

double norm_at(const Map<double>& f, const Matrix& x) {
  return dense_norm(materialize(*f.linearize(x))).value;
}

// the best of many random moves, from tokens of that size
double climbed(const Map<double>& f, Matrix x, double size, Rng rng) {
  double best = norm_at(f, x);
  for (std::uint64_t step = 0; step < 150; ++step) {
    const double length = size * std::pow(0.6, double(step % 8));
    const Matrix y = x + length * gaussian(x.rows(), x.cols(), rng.split(step));
    const double there = norm_at(f, y);
    if (there <= best) continue;
    best = there;
    x = y;
  }
  return best;
}

TEST(PromisedConstant, IsNeverExceededBySearch) {
  const Corpus corpus = corpus_of(sentences(4000), 6, "text");
  for (const double limit : {3.0, 30.0}) {
    LanguageModelConfig config = tiny(Mixer::l2, corpus);
    config.width = 6;
    config.hidden = 12;
    config.context = 6;
    config.norm = NormPlace::none;
    Trainer trainer(config, {.batch = 8,
                             .schedule = {.rate = 1e-2, .warmup = 10},
                             .limits = {.lipschitz = limit},
                             .threads = 1});
    TrainingState state = trainer.initial();
    double first = 0.0, last = 0.0;
    for (int step = 0; step < 400; ++step) {
      last = trainer.step(state, corpus.train).nll;
      if (step == 0) first = last;
    }
    EXPECT_LT(last, 0.8 * first) << "it learnt";
    const Stack stack = stack_of(trainer.model(), state.weights);
    const double certified = stack_constant(stack).logits->value();
    EXPECT_LE(certified, limit);
    EXPECT_GT(certified, 0.9 * limit) << "the promise does not bind";

    const MapPtr<double> f = test::stack_map(stack);
    double reached = 0.0;
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      const double size = std::pow(10.0, static_cast<double>(seed % 4) - 1.0);
      const Rng rng(seed);
      reached = std::max(
          reached,
          climbed(*f, size * gaussian(6, 6, rng.split(1)), size, rng.split(2)));
    }
    std::printf("promised %g, certified %.6g, reached %.6g\n", limit, certified,
                reached);
    EXPECT_LE(reached, certified);
    // the bound is loose, and this is how loose
    EXPECT_GT(reached, 0.2 * certified);
  }
}

}  // namespace promise_slow_test
}  // namespace lipscope::test
