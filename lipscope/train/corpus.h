#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lipscope/core/rng.h"
#include "lipscope/text/vocabulary.h"

namespace lipscope {

/// Where a text of `size` characters is cut into 90, 5 and 5 percent.
struct Pieces {
  Index train_end = 0, valid_end = 0;
};
Pieces pieces_of(Index size);

/// A text in three pieces, one after the other: to learn from, to choose by,
/// and to judge by.
struct Corpus {
  Vocabulary vocabulary;
  std::vector<int> train, valid, test;
};

/// The pieces of the text. InputError, beginning with `where`, if it
/// is not UTF-8, or if it has fewer than two different characters, or if a
/// piece of it does not hold context + 1 characters.
Corpus corpus_of(std::string_view text, Index context,
                 const std::string& where);

/// What is not learnt from, validation and test together.
std::vector<int> last_tenth(const Corpus& corpus);

/// Sequences and what follows each of their characters, [sequences×length] end
/// to end.
struct Batch {
  std::vector<int> characters, targets;
  Index sequences = 0, length = 0;
};

/// Windows of the text that begin anywhere, by the random numbers of this step:
/// the batch of a step does not depend on those before it.
Batch random_batch(std::span<const int> text, Index sequences, Index length,
                   Rng step);

/// The text cut into windows of at most `length`, each predicted from its own
/// beginning, so that every character but the first is a target once; in
/// batches of at most `sequences`.
std::vector<Batch> all_windows(std::span<const int> text, Index sequences,
                               Index length);

}  // namespace lipscope
