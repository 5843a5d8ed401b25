#include "lipscope/train/sample.h"

#include <algorithm>
#include <cmath>

#include "lipscope/core/errors.h"
#include "lipscope/core/rng.h"

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

std::vector<int> sample(LanguageModel<float>& model,
                        const VectorOf<float>& weights,
                        const std::vector<int>& prompt,
                        const SampleOptions& options) {
  require(!prompt.empty(), "sample: the prompt is empty");
  require(options.temperature >= 0 && std::isfinite(options.temperature),
          "sample: temperature {}", options.temperature);
  std::vector<int> text = prompt;
  Rng rng(options.seed);
  for (Index i = 0; i < options.length; ++i) {
    const Index n =
        std::min(static_cast<Index>(text.size()), model.config().context);
    const MatrixOf<float>& logits = model.forward(
        weights, std::span(text).last(static_cast<std::size_t>(n)),
        {.length = n, .threads = options.threads});
    text.push_back(draw(logits.row(n - 1).transpose().cast<double>(),
                        options.temperature, rng));
  }
  return {text.begin() + static_cast<std::ptrdiff_t>(prompt.size()),
          text.end()};
}

}  // namespace lipscope
