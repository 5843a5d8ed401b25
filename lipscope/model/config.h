#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "lipscope/attention/weights.h"
#include "lipscope/model/language_model_config.h"

namespace lipscope {

/// GPT-2, BERT and Llama as Hugging Face has them, and the character-level
/// transformers that `lipscope train` makes.
enum class Architecture { gpt2, bert, llama, lipscope };

std::string name_of(Architecture architecture);  ///< "gpt2", …, "lipscope"

/// What config.json says of a model, as far as its numbers depend on it. The
/// defaults are BERT's.
struct ModelConfig {
  Architecture architecture = Architecture::bert;
  Index layers = 12;
  Index width = 768;  ///< d
  Index heads = 12;
  Index key_heads = 12;   ///< fewer than heads where they are grouped
  Index head_width = 64;  ///< k
  Index mlp_width = 3072;
  Index vocabulary = 30522;
  Index positions = 512;
  Index token_types = 2;   ///< BERT's; 0 elsewhere
  double epsilon = 1e-12;  ///< of the norms
  Activation activation = Activation::gelu;
  std::optional<double> rope_theta = {};  ///< Llama's rotary positions
  bool tied_embeddings = true;  ///< the language-model head is the embedding
  bool attention_bias = true, mlp_bias = true;

  /// Pre-norm models have one more norm at the end.
  NormPlace norm = NormPlace::post;
  Kind kind = Kind::dot;  ///< of its attention
  bool contractive =
      false;  ///< l2, divided by its bound for `positions` tokens
  /// Of an invertible model, see LanguageModelConfig.
  std::optional<double> contraction = {};

  bool pre_norm() const { return norm == NormPlace::pre; }
  Mask mask() const;              ///< none for BERT, causal for all others
  std::string kind_name() const;  ///< of its attention; also "contractive-l2"
};

/// The configuration that Hugging Face's classes have where nothing is said:
/// GPT-2 small, BERT base, Llama 7B; of lipscope's own LanguageModelConfig's
/// defaults with 65 characters.
ModelConfig usual_config(Architecture architecture);

/// What model/ knows of a language model, which is no LSTM.
ModelConfig model_config(const LanguageModelConfig& config);

/// Reads a config.json. Missing keys have the defaults of Hugging Face's
/// transformers. InputError, with the file and the key, for what is malformed
/// or out of range, for other architectures, and for what would change the maps
/// and is not done here: scaled rotary positions, sliding windows,
/// cross-attention, relative positions, mixtures of experts, quantisation, …
ModelConfig read_model_config(const std::filesystem::path& path);

/// The same of a text; `where` begins its messages.
ModelConfig parse_model_config(std::string_view text, const std::string& where);

/// Throws std::invalid_argument unless the numbers fit each other.
void require_sound(const ModelConfig& config);

}  // namespace lipscope
