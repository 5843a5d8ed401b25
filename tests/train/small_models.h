#pragma once

#include <string>

#include "lipscope/train/corpus.h"
#include "lipscope/train/language_model.h"

namespace lipscope::test {

/// The first characters of a sentence that repeats.
inline std::string sentences(std::size_t size) {
  std::string text;
  while (text.size() < size) text += "the quiet river runs. ";
  return text.substr(0, size);
}

/// A model that learns it in a moment.
inline LanguageModelConfig tiny(Mixer mixer, const Corpus& corpus) {
  return {.mixer = mixer,
          .characters = corpus.vocabulary.size(),
          .layers = 2,
          .width = 16,
          .heads = 2,
          .context = 16,
          .hidden = 32};
}

/// A model for exact comparisons, on five characters.
inline LanguageModelConfig little(Mixer mixer, NormPlace norm) {
  return {.mixer = mixer,
          .characters = 5,
          .layers = 2,
          .width = 6,
          .heads = 2,
          .context = 5,
          .hidden = 7,
          .norm = norm};
}

}  // namespace lipscope::test
