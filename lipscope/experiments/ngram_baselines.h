#pragma once

#include <optional>
#include <vector>

#include "lipscope/experiments/experiment.h"
#include "lipscope/train/corpus.h"
#include "lipscope/train/ngrams.h"

/// What counting predicts, beside models that learn: n-grams of the nine tenths
/// on the last tenth (train/ngrams.h).
namespace lipscope {

class NGramBaselines {
 public:
  /// Borrows the corpus, which must outlive this. Counts when it is first
  /// asked.
  explicit NGramBaselines(const Corpus& corpus) : corpus_(corpus) {}

  static constexpr Index longest = 7;
  /// Those that are shown: pairs, and around the strongest of a text of a
  /// million characters.
  static constexpr Index shown[] = {2, 5, 6};

  /// Of n = 1 … longest, on the whole last tenth.
  const std::vector<TextScore>& last_tenth_scores();
  /// In Newhouse25's windows; empty where the last tenth is shorter.
  const std::vector<TextScore>& newhouse25_scores();

 private:
  const NGrams& counted();

  const Corpus& corpus_;
  std::optional<NGrams> counted_;
  std::optional<std::vector<TextScore>> tenth_, windows_;
};

/// The record that asks how well n-grams of this n do.
Record ngram_question(Index n, const Corpus& corpus, Quantity quantity,
                      const std::string& value_of);

}  // namespace lipscope
