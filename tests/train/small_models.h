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
  const bool position = mixer == Mixer::position;
  return {.mixer = mixer,
          .characters = corpus.vocabulary.size(),
          .layers = 2,
          .width = 16,
          .heads = 2,
          .context = 16,
          .position_heads = position ? 2 : 0,
          .heads_apart = position,
          .hidden = 32};
}

/// A model for exact comparisons, on five characters.
inline LanguageModelConfig little(Mixer mixer, NormPlace norm) {
  const bool position = mixer == Mixer::position;
  return {.mixer = mixer,
          .characters = 5,
          .layers = 2,
          .width = 6,
          .heads = 2,
          .context = 5,
          .position_heads = position ? 2 : 0,
          .heads_apart = position,
          .hidden = 7,
          .norm = norm};
}

/// The same without norms, with heads that stand apart, the first of three by
/// position, and all that comes with them.
inline LanguageModelConfig little_apart(Mixer mixer, Join join) {
  LanguageModelConfig config = little(mixer, NormPlace::none);
  config.heads = 3;
  config.position_heads = mixer == Mixer::position ? 3 : 1;
  config.heads_apart = true;
  config.positions = mixer == Mixer::dot ? Positions::rotary : Positions::none;
  config.hidden = 8;
  config.activation = Activation::max_min;
  config.join = join;
  config.join_share = join == Join::convex ? 0.3 : 1.0;
  config.head_bias = true;
  return config;
}

/// The first of these, invertible.
inline LanguageModelConfig little_invertible() {
  LanguageModelConfig config = little(Mixer::contractive_l2, NormPlace::none);
  config.contraction = 0.9;
  return config;
}

/// Contractive, each coordinate divided by itself, with relative positions.
inline LanguageModelConfig little_by_coordinate(NormPlace norm) {
  LanguageModelConfig config = little(Mixer::contractive_l2, norm);
  config.positions = Positions::relative;
  config.division = Division::coordinate;
  return config;
}

}  // namespace lipscope::test
