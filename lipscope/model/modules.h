#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lipscope/model/config.h"
#include "lipscope/model/parameters.h"

/// The modules of a model by their Hugging Face names: what there should be in
/// a file, and of which shape. Made from its configuration and the names of its
/// family (model/family.h).
namespace lipscope {

struct Module {
  enum class Stored {
    in_out,  ///< weight [in, out]: GPT-2's Conv1D, lipscope's own, and tables
    out_in,  ///< weight [out, in]: torch's Linear
    vector,  ///< weight [out]: a norm's gain
    bare,    ///< [in, out], under the name of the module alone
    nothing  ///< a norm without parameters
  };

  std::string name;
  Stored stored = Stored::out_in;
  Index in = 0, out = 0;
  bool bias = false;
};

TensorSpec weight_of(const Module& module);
TensorSpec bias_of(const Module& module);
std::vector<TensorSpec> tensors_of(const Module& module);

/// Outside the layers.
struct OuterModules {
  Module tokens;                    ///< [vocabulary, d]; no name: none
  std::optional<Module> positions;  ///< [offset + positions, d]
  std::optional<Module> types;      ///< [token types, d]
  std::optional<Module> embedding_norm;
  std::optional<Module> embedding_projection;  ///< to d, where they are not
  std::optional<Module> relative_bias;         ///< [buckets, heads]
  std::optional<Module> final_norm;
  /// To logits; absent where tied, and where there is none.
  std::optional<Module> head;

  /// Whether the model has a table of tokens.
  bool reads_tokens() const { return !tokens.name.empty(); }
};

struct LayerModules {
  /// q, k, v; in one; or q and v, where the queries are the keys; none where
  /// all heads look by position.
  std::vector<Module> projections;
  std::optional<Module> output;  ///< absent where heads are apart
  /// Of position heads: their bias of distances [P, T] and values [d, P·k].
  std::optional<Module> position_bias, position_value;
  std::optional<Module> share;  ///< of heads apart [1, H]
  /// Of heads that compare: a number for each distance back [C, T].
  std::optional<Module> distance_bias;
  std::optional<Module> query_norm, key_norm;
  Module up, down;  ///< `up` [d, 2m] where the gate is in it as well
  std::optional<Module> gate;
  std::optional<Module> attention_norm, mlp_norm;
  std::optional<Module> attention_output_norm, mlp_output_norm;
};

OuterModules outer_modules(const ModelConfig& config);
LayerModules layer_modules(const ModelConfig& config, Index layer);
/// With `label` where the names have the layer's number: "*" for any.
LayerModules layer_modules(const ModelConfig& config, const std::string& label);

/// Whether the model has a head that predicts the next token.
bool has_head(const ModelConfig& config);

/// The norm whose output the attention of a layer reads: in a post-norm model
/// the last of the layer before, or of the embeddings; those of the embeddings
/// as well where the first layer has none. Nothing where there is none.
std::optional<Module> norm_ahead(const ModelConfig& config, Index layer);

/// Numbers in all tensors of a model. A double, as no count of them overflows
/// it.
double parameter_count(const ModelConfig& config);

/// All that a map of attention reads.
std::vector<Module> attention_modules(const LayerModules& layer);

/// All of them, in the order of the model.
std::vector<Module> modules_of(const LayerModules& layer);
std::vector<Module> modules_of(const OuterModules& outer);

}  // namespace lipscope
