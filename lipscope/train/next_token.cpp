#include "lipscope/train/next_token.h"

#include <algorithm>
#include <cmath>

#include "lipscope/core/errors.h"
#include "lipscope/core/rng.h"
#include "lipscope/train/corpus.h"
#include "lipscope/train/cross_entropy.h"

namespace lipscope {
namespace {

int draw(const Vector& logits, double temperature, Rng& rng) {
  Index best = 0;
  const double largest = logits.maxCoeff(&best);
  if (temperature == 0) return static_cast<int>(best);
  const Vector weights =
      ((logits.array() - largest) / temperature).exp().matrix();
  double left = rng.uniform() * weights.sum();
  for (Index i = 0; i < weights.size(); ++i) {
    left -= weights[i];
    if (left < 0) return static_cast<int>(i);
  }
  return static_cast<int>(best);  // rounding left a little over
}

}  // namespace

NextToken next_token(LanguageModel<float>& model,
                     const VectorOf<float>& weights) {
  return [&model, &weights](std::span<const int> tokens,
                            const Pass& pass) -> const MatrixOf<float>& {
    return model.forward(weights, tokens, pass);
  };
}

TextScore score_of(const NextToken& next, std::span<const int> text,
                   Index context, int threads, Index together) {
  require(text.size() >= 2, "score_of: a text of {} tokens", text.size());
  double sum = 0.0;
  Index right = 0;
  for (const Batch& batch : all_windows(text, together, context)) {
    const MatrixOf<float>& logits =
        next(batch.characters, {.sequences = batch.sequences,
                                .length = batch.length,
                                .threads = threads});
    sum += cross_entropy(logits, batch.targets, threads);
    right += likeliest(logits, batch.targets);
  }
  const double predicted = static_cast<double>(text.size() - 1);
  return {.nll = sum / predicted,
          .accuracy = static_cast<double>(right) / predicted};
}

TextScore score_of(LanguageModel<float>& model, const VectorOf<float>& weights,
                   std::span<const int> text, int threads) {
  return score_of(next_token(model, weights), text, model.config().context,
                  threads);
}

std::vector<int> sample(const NextToken& next, Index context,
                        const std::vector<int>& prompt,
                        const SampleOptions& options) {
  require(!prompt.empty(), "sample: the prompt is empty");
  require(options.temperature >= 0 && std::isfinite(options.temperature),
          "sample: temperature {}", options.temperature);
  std::vector<int> text = prompt;
  Rng rng(options.seed);
  for (Index i = 0; i < options.length; ++i) {
    const Index n = std::min(static_cast<Index>(text.size()), context);
    const MatrixOf<float>& logits =
        next(std::span(text).last(static_cast<std::size_t>(n)),
             {.length = n, .threads = options.threads});
    text.push_back(draw(logits.row(n - 1).transpose().cast<double>(),
                        options.temperature, rng));
  }
  return {text.begin() + static_cast<std::ptrdiff_t>(prompt.size()),
          text.end()};
}

}  // namespace lipscope
