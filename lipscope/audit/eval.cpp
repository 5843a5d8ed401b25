#include "lipscope/audit/eval.h"

#include <algorithm>
#include <stdexcept>

#include "lipscope/core/errors.h"
#include "lipscope/train/ngrams.h"
#include "lipscope/train/sliding_windows.h"

namespace lipscope::audit {
namespace {

void require_allowed(const EvalRequest& o) {
  const std::string& piece = o.text.piece;
  if (o.windows == EvalWindows::newhouse25 && piece != "last-tenth")
    throw InputError(
        fmt::format("--windows newhouse25: these windows are at the beginning "
                    "of the last tenth; give --split last-tenth, not {}",
                    piece));
  if (o.ngrams > 0 && piece != "valid" && piece != "test" &&
      piece != "last-tenth")
    throw InputError(
        fmt::format("--ngrams {}: they are counted in the first nine tenths of "
                    "the text, and judged by the rest; give --split "
                    "last-tenth, valid or test, not {}",
                    o.ngrams, piece));
}

// by the characters of the text's first nine tenths
std::vector<TextScore> ngram_scores(const EvalRequest& o,
                                    const Tokenizer& tokenizer,
                                    std::span<const int> piece) {
  const TextPiece learnt =
      piece_of({.text = o.text.text, .piece = "train"}, tokenizer);
  const NGrams counted(learnt.tokens, tokenizer.vocabulary_size(), o.ngrams);
  if (o.windows == EvalWindows::own) return counted.scores(piece);
  std::vector<TextScore> scores;
  for (Index n = 1; n <= o.ngrams; ++n)
    scores.push_back(score_of(counted.next(n), piece, std::max<Index>(1, n - 1),
                              SlidingWindows{}, o.threads));
  return scores;
}

}  // namespace

std::string name_of(EvalWindows windows) {
  switch (windows) {
    case EvalWindows::own:
      return "own";
    case EvalWindows::newhouse25:
      return "newhouse25";
  }
  throw std::invalid_argument("name_of: no such windows");
}

Evaluated evaluate(const EvalRequest& o) {
  require_allowed(o);
  const Predictor model(o.folder, o.threads, o.weights);
  const bool asks_characters =
      o.windows == EvalWindows::newhouse25 || o.ngrams > 0;
  if (asks_characters && !model.reads_characters())
    throw InputError(fmt::format(
        "{}: its tokens are not characters; {} are of characters", o.folder,
        o.ngrams > 0 ? "n-grams" : "Newhouse25's windows"));
  Evaluated found{.piece = piece_of(o.text, model.tokenizer()),
                  .model_sha256 = model.sha256(),
                  .characters = model.reads_characters(),
                  .context = model.context()};
  const std::span<const int> tokens = found.piece.tokens;
  const SlidingWindows windows;
  if (o.windows == EvalWindows::own) {
    found.score = model.score(tokens);
    found.predicted = static_cast<Index>(tokens.size()) - 1;
  } else {
    if (static_cast<Index>(tokens.size()) < windows.characters())
      throw InputError(fmt::format(
          "{}: its last tenth has {} characters; Newhouse25's windows need {}",
          o.text.text, tokens.size(), windows.characters()));
    found.score =
        score_of(model.next(), tokens, model.context(), windows, o.threads);
    found.predicted = windows.count * windows.length;
  }
  if (o.ngrams > 0) found.ngrams = ngram_scores(o, model.tokenizer(), tokens);
  return found;
}

}  // namespace lipscope::audit
