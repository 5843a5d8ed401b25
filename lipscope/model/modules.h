#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lipscope/model/config.h"
#include "lipscope/model/parameters.h"

/// The modules of each architecture by their Hugging Face names: what there
/// should be in a file, and of which shape.
namespace lipscope {

struct Module {
  enum class Stored {
    in_out,  ///< weight [in, out]: GPT-2's Conv1D, lipscope's own, and tables
    out_in,  ///< weight [out, in]: torch's Linear
    vector   ///< weight [out]: a norm's gain
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
  Module tokens;                    ///< [vocabulary, d]
  std::optional<Module> positions;  ///< [positions, d]
  std::optional<Module> types;      ///< [token types, d]
  std::optional<Module> embedding_norm, final_norm;
  std::optional<Module> head;  ///< to logits; absent where tied, and for BERT
};

struct LayerModules {
  /// q, k, v; side by side in one; or q and v, where the queries are the keys.
  std::vector<Module> projections;
  Module output, up, down;
  std::optional<Module> attention_norm, mlp_norm;
  std::optional<Module> gate;
};

OuterModules outer_modules(const ModelConfig& config);
LayerModules layer_modules(const ModelConfig& config, Index layer);
/// With `label` where the names have the layer's number: "*" for any.
LayerModules layer_modules(const ModelConfig& config, const std::string& label);

/// Numbers in all tensors of a model. A double, as no count of them overflows
/// it.
double parameter_count(const ModelConfig& config);

/// All of them, in the order of the model.
std::vector<Module> modules_of(const LayerModules& layer);
std::vector<Module> modules_of(const OuterModules& outer);

}  // namespace lipscope
