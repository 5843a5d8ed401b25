#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "lipscope/attention/weights.h"
#include "lipscope/model/activation.h"

namespace lipscope {

/// What mixes the characters of a sequence.
enum class Mixer { dot, l2, l2_untied, contractive_l2, lstm };

inline constexpr Mixer all_mixers[] = {Mixer::dot, Mixer::l2, Mixer::l2_untied,
                                       Mixer::contractive_l2, Mixer::lstm};

std::string name_of(Mixer mixer);  ///< "dot", …, "contractive-l2", "lstm"

/// The attention of a mixer, which is no LSTM.
Kind attention_kind(Mixer mixer);

/// Where the norms of a block stand.
enum class NormPlace {
  post,  ///< x ↦ norm(x + f(x)), f attention and then the MLP [Kim21]
  pre,   ///< x ↦ x + f(norm(x))
  none   ///< x ↦ x + f(x)
};

std::string name_of(NormPlace place);  ///< "post", "pre", "none"

/// A character-level language model [Kim21], as `lipscope train` makes it.
/// heads, hidden, activation, norm and contraction are those of transformers
/// and mean nothing to an LSTM.
struct LanguageModelConfig {
  static constexpr double epsilon = 1e-5;  ///< of the norms

  Mixer mixer = Mixer::dot;
  Index characters = 0;  ///< of the vocabulary
  Index layers = 4, width = 256, heads = 8;
  Index context = 128;  ///< longest sequence
  Index hidden = 1024;  ///< of the MLP
  Activation activation = Activation::gelu;
  NormPlace norm = NormPlace::post;
  /// c < 1 of an invertible model, which is contractive-l2 without norms: its
  /// residual branches are x + c f(x), with f attention or MLP divided by a
  /// bound on its constant in the inf-norm (model/contraction.h).
  std::optional<double> contraction = {};
};

/// Throws std::invalid_argument unless the numbers fit each other.
void require_sound(const LanguageModelConfig& config);

/// Reads the config.json of a folder that `lipscope train` made; `where` begins
/// messages. InputError, with the key, for what is missing, malformed or out of
/// range. Of "characters" only the number is read (see text/vocabulary.h).
LanguageModelConfig parse_language_model_config(std::string_view text,
                                                const std::string& where);

/// The same of a file; nothing where its model_type says that somebody else
/// made the folder.
std::optional<LanguageModelConfig> read_language_model_config(
    const std::filesystem::path& path);

}  // namespace lipscope
