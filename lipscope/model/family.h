#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lipscope/model/config.h"
#include "lipscope/model/config_reader.h"

/// What a family of transformers is, as data: one value for each, defined in
/// the file of its name in model/families/ and listed in families.cpp there.
/// One reader (model/config.cpp) and one builder (model/modules.cpp,
/// model/layer.cpp, model/pass.cpp) read it. No other code asks for the family.
namespace lipscope {

/// The keys of config.json; the first that is there counts. Without a key the
/// number is that of Family::usual.
struct ConfigKeys {
  using Keys = std::vector<const char*>;

  Keys layers = {"num_hidden_layers"}, width = {"hidden_size"};
  Keys heads = {"num_attention_heads"};
  Keys key_heads = {}, head_width = {};
  Keys mlp_width = {"intermediate_size"}, vocabulary = {"vocab_size"};
  Keys positions = {"max_position_embeddings"};
  Keys token_types = {}, embedding_width = {};
  Keys epsilon = {}, activation = {"hidden_act"};
  Keys attention_bias = {}, output_bias = {}, mlp_bias = {};
  /// Of rotary positions; older files have them beside the others.
  Keys rope_theta = {"rope_theta"}, rotary_share = {};
  /// The window, and what switches it on (none: it is on where it is there).
  Keys window = {}, use_window = {};
  Keys parallel = {}, decoder = {};
};

/// A setting that is not done here: any value but null and false, or any but
/// `only`.
struct Refusal {
  const char* key;
  const char* what;
  std::optional<bool> only = {};
};

/// The names of a layer's modules behind `at`, which has {} for its number.
/// Empty: there is none.
struct LayerNames {
  std::string at;
  std::string query, key, value;  ///< or all in one:
  std::string joined;
  std::string output;
  std::string up, down, gate;
  std::string joined_gate;  ///< gate and up in one, in place of both
  std::string attention_norm, mlp_norm;
  std::string attention_output_norm, mlp_output_norm;
  std::string query_norm, key_norm;
  /// Of position heads [P×T] and their values; of heads apart [1×H]; of heads
  /// that compare [C×T].
  std::string position_bias, position_value, share, distance_bias;
};

/// Those outside the layers.
struct OuterNames {
  std::string tokens;  ///< empty: it reads no tokens
  std::string positions, types;
  std::string embedding_norm;
  std::string embedding_projection;  ///< behind the norm
  std::string relative_bias;         ///< [buckets, heads], of all layers
  std::string final_norm;
  std::string head;  ///< empty: none that predicts the next token
};

struct Family {
  std::vector<std::string> model_types;  ///< in config.json; the first names it
  /// What the classes with a head put ahead of names; they may be missing.
  std::vector<std::string> prefixes;
  /// What transformers takes where config.json says nothing. 0 key heads are as
  /// many as heads, a head width of 0 is width/heads.
  ModelConfig usual;
  /// Whether layer_types of config.json says which layers have the window.
  bool reads_layer_types = false;
  /// Whether its modules in transformers take no notice of a sliding_window.
  bool ignores_window = false;
  bool mlp_of_width = false;  ///< four times as wide, unless something is said
  /// Of the features of a head, those that are rotated; also unless something
  /// is said.
  double rotary_share = 1.0;
  ConfigKeys keys;
  std::vector<Refusal> refusals;
  OuterNames outer;
  LayerNames layer;
  bool stored_in_out = false;  ///< matrices [in, out], not torch's [out, in]
  bool head_in_out = false;    ///< the same of the language-model head
  /// Random weights: the end of the names of matrices whose deviation is
  /// divided by √(2·layers).
  std::string shrunk = {};
  /// Settings that are more than a key.
  void (*read)(const ConfigReader& config, ModelConfig& c) = nullptr;
};

/// Sets which layers have the window: those that layer_types says, or, where
/// config.json has none, those for which `otherwise` holds. Without a window
/// nothing is set.
void read_local_layers(const ConfigReader& config, ModelConfig& c,
                       const std::function<bool(Index)>& otherwise);

const Family& family_of(Architecture architecture);

/// By the model_type of a config.json; nothing if there is none.
std::optional<Architecture> architecture_named(std::string_view model_type);

/// Why models of this well-known type are not read; nothing where nothing is
/// known of it, or where they are read.
std::optional<std::string> why_left_out(std::string_view model_type);

/// All model_types, for messages: "gpt2, bert, …".
std::string known_model_types();

}  // namespace lipscope
