#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "lipscope/model/config.h"
#include "lipscope/model/modules.h"
#include "lipscope/model/parameters.h"

namespace lipscope {

/// A transformer as it lies on disk or in memory, or as a seed makes it.
/// Numbers are read when they are asked for, a layer or a row at a time: see
/// load_layer, embed.
struct Model {
  ModelConfig config;
  Parameters parameters;
};

/// A Hugging Face folder: config.json and safetensors. InputError for anything
/// in it that is not as it should be. Tensors that are missing are no error
/// until something needs them.
Model load_model(const std::filesystem::path& folder);

/// A model whose tensors somebody else has in memory.
struct ModelInMemory {
  ModelConfig config;
  std::shared_ptr<const TensorsInMemory> tensors;
};

/// The model on these tensors, which it shares.
Model load_model(const ModelInMemory& memory);

/// The same architecture with its usual random initialisation (see Parameters),
/// without dropout; usual_config(Architecture::gpt2) is GPT-2 small.
Model random_model(const ModelConfig& config, std::uint64_t seed);

/// What a pass from tokens to the last hidden state would miss, by Hugging Face
/// names: "wte.weight", "h.*.mlp.c_fc.weight" where every layer misses it.
std::vector<std::string> missing_tensors(const Model& model);

/// InputError with what is missing, unless nothing is: "DIR: no wte.weight and
/// no h.*.mlp.c_fc.weight; a pass from tokens needs them".
void require_complete(const Model& model);

/// InputError unless the model predicts the next token: its mask is causal and
/// it has a language-model head that this program reads, which BERT does not.
void require_next_token(const Model& model);

/// InputError with the tensors of these modules that are missing, and with what
/// needs them, unless none is.
void require_tensors(const Model& model, const std::vector<Module>& modules,
                     const std::string& purpose);

}  // namespace lipscope
