#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "lipscope/attention/weights.h"
#include "lipscope/model/activation.h"

namespace lipscope {

/// What mixes the characters of a sequence.
enum class Mixer { dot, l2, l2_untied, contractive_l2, position, lstm };

inline constexpr Mixer all_mixers[] = {Mixer::dot,       Mixer::l2,
                                       Mixer::l2_untied, Mixer::contractive_l2,
                                       Mixer::position,  Mixer::lstm};

/// "dot", …, "contractive-l2", "position", "lstm"
std::string name_of(Mixer mixer);

/// Whether it has heads that compare characters: it is neither position nor
/// lstm.
bool compares(Mixer mixer);

/// The attention of a mixer that compares.
Kind attention_kind(Mixer mixer);

/// Where the norms of a block stand.
enum class NormPlace {
  post,  ///< x ↦ norm(x + f(x)), f attention and then the MLP [Kim21]
  pre,   ///< x ↦ x + f(norm(x))
  none   ///< x ↦ x + f(x)
};

std::string name_of(NormPlace place);  ///< "post", "pre", "none"

/// What a block makes of x and f(x), f attention and then the MLP.
enum class Join {
  add,     ///< x + f(x)
  convex,  ///< (1 − α)x + α f(x)
  none     ///< f(x)
};

inline constexpr Join all_joins[] = {Join::add, Join::convex, Join::none};

std::string name_of(Join join);  ///< "add", "convex", "none"

/// What contractive-l2 attention is divided by.
enum class Division {
  layer,      ///< all of it by one bound [Kim21], model/contraction.h
  coordinate  ///< each coordinate of it by a bound of its own,
              ///< model/coordinate_contraction.h
};

inline constexpr Division all_divisions[] = {Division::layer,
                                             Division::coordinate};

std::string name_of(Division division);  ///< "layer", "coordinate"

/// How a model knows where a character stands, besides by position heads.
enum class Positions {
  table,     ///< a learnt row for each position is added to the embedding
  rotary,    ///< queries and keys of dot-product heads are rotated
  relative,  ///< each head that compares adds a learnt number for each distance
             ///< to its scores: s_ij + b_{i−j}
  none
};

inline constexpr Positions all_positions[] = {
    Positions::table, Positions::rotary, Positions::relative, Positions::none};

/// "table", "rotary", "relative", "none"
std::string name_of(Positions positions);

/// A character-level language model [Kim21], as `lipscope train` makes it.
/// heads and what follows the context are those of transformers and mean
/// nothing to an LSTM.
///
/// The first `position_heads` of the heads look by distance alone
/// (attention/position_heads.h), the others compare characters. With
/// `heads_apart` there is no W_O: head h writes coordinates h·k … (h + 1)k − 1,
/// times a learnt share c_h ≥ 0 with Σc_h² = 1. Position heads need that.
struct LanguageModelConfig {
  static constexpr double epsilon = 1e-5;  ///< of the norms

  Mixer mixer = Mixer::dot;
  Index characters = 0;  ///< of the vocabulary
  Index layers = 4, width = 256, heads = 8;
  Index context = 128;       ///< longest sequence
  Index position_heads = 0;  ///< of the heads; all of them of Mixer::position
  bool heads_apart = false;
  Positions positions = Positions::table;
  Index hidden = 1024;  ///< of the MLP
  Activation activation = Activation::gelu;
  NormPlace norm = NormPlace::post;
  Join join = Join::add;
  double join_share = 1.0;              ///< α of Join::convex, in (0, 1)
  bool head_bias = false;               ///< logits = x W + b
  Division division = Division::layer;  ///< of contractive-l2
  /// G of a quiet start (train/quiet_start.h), of contractive-l2 with relative
  /// positions and norms; nothing: the usual one. Weights that are read do not
  /// depend on it.
  std::optional<double> quiet_gain = {};
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
