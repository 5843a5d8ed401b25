#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lipscope/attention/rope.h"
#include "lipscope/attention/weights.h"
#include "lipscope/model/architecture.h"
#include "lipscope/model/language_model_config.h"

namespace lipscope {

/// The norms of a model, and which parameters they have.
enum class NormForm {
  layer,           ///< LayerNorm, with gain and bias
  layer_unscaled,  ///< LayerNorm without parameters
  rms,             ///< RMSNorm, with a gain
  rms_one_plus,    ///< RMSNorm whose gain is 1 + what is stored
  layer_gain       ///< LayerNorm, with a gain
};

/// How the files have q, k and v.
enum class Projections {
  apart,         ///< three matrices; two where queries are the keys
  side_by_side,  ///< one, first all queries, then all keys, then all values
  by_head        ///< one, with q, k and v of each head together
};

/// Whether and how queries and keys are normed ahead of their rotation.
enum class QueryKeyNormForm { none, each_head, over_heads };

/// A transformer as far as its numbers depend on it: what its family has, and
/// what its config.json says. One builder reads it (model/modules.h,
/// model/layer.h, model/pass.h). The defaults are BERT's.
struct ModelConfig {
  Architecture architecture = Architecture::bert;
  Index layers = 12;
  Index width = 768;  ///< d
  Index heads = 12;
  Index key_heads = 12;   ///< fewer than heads where they are grouped
  Index head_width = 64;  ///< k
  /// The first so many of the heads look by distance alone
  /// (attention/position_heads.h). Only lipscope's own models have them.
  Index position_heads = 0;
  /// Each head writes coordinates of its own, without W_O; see
  /// LanguageModelConfig.
  bool heads_apart = false;
  Index mlp_width = 3072;
  Index vocabulary = 30522;
  Index positions = 512;   ///< the longest sequence of a table of positions
  Index token_types = 2;   ///< BERT's; 0 elsewhere
  double epsilon = 1e-12;  ///< of the norms
  Activation activation = Activation::gelu;
  std::optional<Rotary> rope = {};
  bool tied_embeddings = true;  ///< the language-model head is the embedding
  bool attention_bias = true;   ///< of q, k and v
  bool mlp_bias = true;

  /// Pre-norm models have one more norm at the end.
  NormPlace norm = NormPlace::post;
  Kind kind = Kind::dot;  ///< of its attention
  bool contractive =
      false;  ///< l2, divided by its bound for `positions` tokens
  /// Of an invertible model, see LanguageModelConfig.
  std::optional<double> contraction = {};
  bool divided_by_coordinate = false;  ///< see Division

  // ---- the form of a layer
  bool causal = false;
  NormForm norm_form = NormForm::layer;
  /// x + norm(f(…)): a norm of what attention and MLP give, ahead of the sum.
  bool output_norms = false;
  /// A pre-norm model whose first layer is x + attn(x) ahead of its MLP.
  bool first_attention_unnormed = false;
  /// x + attn(norm x) + mlp(norm x), and whether both read one norm.
  bool parallel = false, shared_norm = false;
  bool gated = false;  ///< the MLP
  Projections projections = Projections::apart;
  bool output_bias = true;  ///< of W_O
  QueryKeyNormForm query_key_norm = QueryKeyNormForm::none;
  /// Rotated planes are features 2i and 2i + 1, not i and i + m.
  bool rope_interleaved = false;
  std::vector<Index> unrotated = {};  ///< layers without rotation
  /// Tokens of layers with a window see those less than this away.
  std::optional<Index> window = {};
  std::vector<Index> local = {};           ///< those layers; empty: all
  std::optional<double> local_theta = {};  ///< θ of those that `local` lists
  /// Scores are q·k times this, in place of 1/√k.
  std::optional<double> score_scale = {};
  double residual_scale = 1.0;  ///< c of carry x + c f(norm x)
  double carry = 1.0;           ///< 0: f alone
  Index relative_buckets = 0;   ///< of a relative bias; 0: none
  /// Each layer has a relative bias of its own, that of heads that compare,
  /// with a number for each of `positions` distances back. Only lipscope's own
  /// models have them.
  bool distance_bias = false;
  Index layer_groups = 0;  ///< layers share the weights of so many; 0: none do

  // ---- ahead of the layers and behind them
  Index embedding_width = 0;   ///< of tokens, projected to d; 0: they have d
  bool position_table = true;  ///< where the family has one
  Index position_offset = 0;   ///< rows of the table ahead of position 0
  /// A token that has no position, and the position row of this number
  /// [RoBERTa]: those behind it move up.
  std::optional<Index> padding = {};
  double embedding_scale = 1.0;  ///< of tokens
  bool head_bias = false;        ///< of the language-model head
  double logit_scale = 1.0;

  bool pre_norm() const { return norm == NormPlace::pre; }
  bool has_norms() const { return norm != NormPlace::none || output_norms; }
  /// Heads that compare tokens; those that look by position come first.
  Index comparing_heads() const { return heads - position_heads; }
  bool has_relative_bias() const {
    return relative_buckets > 0 || distance_bias;
  }
  /// Whether `local` lists the layer.
  bool is_local(Index layer) const;
  /// What the tokens of a layer see.
  Mask mask(Index layer) const;
  /// Whether scores are those that the kind says and nothing else.
  bool plain_scores() const {
    return !rope && !has_relative_bias() && position_heads == 0 &&
           query_key_norm == QueryKeyNormForm::none;
  }
  /// What makes scores more than that, for messages: "rotary positions and
  /// q/k-norm"; empty if nothing does.
  std::string score_features() const;
  /// Of its attention; also "contractive-l2", and "position" where no head
  /// compares.
  std::string kind_name() const;
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
/// and is not done here: cross-attention, mixtures of experts, quantisation,
/// capped scores, …
ModelConfig read_model_config(const std::filesystem::path& path);

/// The same of a text; `where` begins its messages.
ModelConfig parse_model_config(std::string_view text, const std::string& where);

/// Throws std::invalid_argument unless the numbers fit each other.
void require_sound(const ModelConfig& config);

}  // namespace lipscope
