#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lipscope/train/language_model.h"
#include "lipscope/train/text_score.h"

/// What a model says of the next token, how well it says it, and what it
/// writes.
namespace lipscope {

/// The logits of what follows each of the tokens [N×V], of the sequences of
/// the pass end to end. The matrix holds until the next call.
using NextToken = std::function<const MatrixOf<float>&(
    std::span<const int> tokens, const Pass& pass)>;

/// Of a model that learns. Borrows both, which must outlive it.
NextToken next_token(LanguageModel<float>& model,
                     const VectorOf<float>& weights);

/// Windows of a text are read together in the training of small models.
inline constexpr Index windows_together = 32;

/// In nats, over the text, in windows of at most `context` tokens, `together`
/// at a time.
TextScore score_of(const NextToken& next, std::span<const int> text,
                   Index context, int threads = 0,
                   Index together = windows_together);

/// The same of a model that learns, in windows of its context.
TextScore score_of(LanguageModel<float>& model, const VectorOf<float>& weights,
                   std::span<const int> text, int threads = 0);

struct SampleOptions {
  Index length = 500;        ///< tokens to draw
  double temperature = 1.0;  ///< of the softmax; 0: the likeliest each time
  std::uint64_t seed = 0;
  int threads = 0;  ///< 0: all cores
};

/// Tokens that follow the prompt, one by one: each is drawn from what the model
/// says of the last `context` tokens. The prompt must not be empty.
std::vector<int> sample(const NextToken& next, Index context,
                        const std::vector<int>& prompt,
                        const SampleOptions& options = {});

}  // namespace lipscope
