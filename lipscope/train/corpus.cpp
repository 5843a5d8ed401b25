#include "lipscope/train/corpus.h"

#include <algorithm>
#include <utility>

#include "lipscope/core/errors.h"
#include "lipscope/text/utf8.h"

namespace lipscope {

Pieces pieces_of(Index size) {
  return {.train_end = size * 90 / 100, .valid_end = size * 95 / 100};
}

Corpus corpus_of(std::string_view text, Index context,
                 const std::string& where) {
  try {
    check_utf8(text);
  } catch (const InputError& e) {
    throw InputError(fmt::format("{}: {}", where, e.what()));
  }
  Vocabulary vocabulary = Vocabulary::of(text);
  if (vocabulary.size() < 2)
    throw InputError(fmt::format(
        "{}: {} different characters; a model needs two to choose from", where,
        vocabulary.size()));
  const std::vector<int> all = vocabulary.encode(text, where);
  const auto size = static_cast<Index>(all.size());
  const auto [first, second] = pieces_of(size);
  const Index smallest = std::min({first, second - first, size - second});
  if (smallest < context + 1)
    throw InputError(fmt::format(
        "{}: {} characters; 5 % of them, kept for validation, are {}, and a "
        "context of {} needs {}",
        where, size, smallest, context, context + 1));
  return {.vocabulary = std::move(vocabulary),
          .train = {all.begin(), all.begin() + first},
          .valid = {all.begin() + first, all.begin() + second},
          .test = {all.begin() + second, all.end()}};
}

std::vector<int> last_tenth(const Corpus& corpus) {
  std::vector<int> both = corpus.valid;
  both.insert(both.end(), corpus.test.begin(), corpus.test.end());
  return both;
}

namespace {

void append_window(Batch& batch, std::span<const int> text, Index begin) {
  const int* const from = text.data() + begin;
  batch.characters.insert(batch.characters.end(), from, from + batch.length);
  batch.targets.insert(batch.targets.end(), from + 1, from + 1 + batch.length);
  ++batch.sequences;
}

}  // namespace

Batch random_batch(std::span<const int> text, Index sequences, Index length,
                   Rng step) {
  require(static_cast<Index>(text.size()) > length,
          "batch: {} characters for windows of {}", text.size(), length);
  const std::uint64_t places = text.size() - length;
  Batch batch{.length = length};
  for (Index i = 0; i < sequences; ++i)
    append_window(batch, text, static_cast<Index>(step.next() % places));
  return batch;
}

std::vector<Batch> all_windows(std::span<const int> text, Index sequences,
                               Index length) {
  std::vector<Batch> batches;
  const auto last = static_cast<Index>(text.size()) - 1;
  for (Index begin = 0; begin < last; begin += length) {
    const Index size = std::min(length, last - begin);
    if (batches.empty() || batches.back().sequences == sequences ||
        batches.back().length != size)
      batches.push_back({.length = size});
    append_window(batches.back(), text, begin);
  }
  return batches;
}

}  // namespace lipscope
