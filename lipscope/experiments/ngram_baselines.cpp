#include "lipscope/experiments/ngram_baselines.h"

#include <fmt/format.h>

#include <algorithm>

#include "lipscope/train/sliding_windows.h"

namespace lipscope {

const NGrams& NGramBaselines::counted() {
  if (!counted_)
    counted_.emplace(corpus_.train, corpus_.vocabulary.size(), longest);
  return *counted_;
}

const std::vector<TextScore>& NGramBaselines::last_tenth_scores() {
  if (!tenth_) tenth_ = counted().scores(last_tenth(corpus_));
  return *tenth_;
}

const std::vector<TextScore>& NGramBaselines::newhouse25_scores() {
  if (windows_) return *windows_;
  windows_.emplace();
  const std::vector<int> text = last_tenth(corpus_);
  const SlidingWindows windows;
  if (static_cast<Index>(text.size()) < windows.characters()) return *windows_;
  for (Index n = 1; n <= longest; ++n)
    windows_->push_back(score_of(counted().next(n), text,
                                 std::max<Index>(1, n - 1), windows, 1));
  return *windows_;
}

Record ngram_question(Index n, const Corpus& corpus, Quantity quantity,
                      const std::string& value_of) {
  Record r = attention_question(fmt::format("counted {}-grams", n));
  r.map = "model";
  r.kind = fmt::format("{}-grams", n);
  r.norm.reset();
  r.n = n;
  r.d = corpus.vocabulary.size();
  r.scope = Scope::test_text;
  r.quantity = quantity;
  r.value_of = value_of;
  return r;
}

}  // namespace lipscope
