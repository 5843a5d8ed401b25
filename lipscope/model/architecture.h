#pragma once

#include <string>

namespace lipscope {

/// The families of transformers that can be read, as Hugging Face has them, and
/// the character-level transformers that `lipscope train` makes. One value for
/// each in model/families/.
enum class Architecture {
  gpt2,
  bert,
  llama,
  lipscope,
  roberta,  ///< XLM-R and CamemBERT as well
  distilbert,
  electra,
  albert,
  mpnet,
  mistral,
  qwen2,
  qwen3,
  gpt_neox,  ///< Pythia
  opt,
  phi,
  phi3,
  stablelm,
  smollm3,
  granite,
  olmo,
  olmo2,
  gemma,
  gemma3,
  gptj,
  modernbert,
  vit
};

std::string name_of(Architecture architecture);  ///< "gpt2", …, "lipscope"

}  // namespace lipscope
