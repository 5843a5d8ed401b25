#include <cmath>

#include "lipscope/model/families/families.h"

namespace lipscope {
// Llama with embeddings times √d and norms whose gain is 1 + what is stored.
Family gemma_family() {
  Family f = llama_family();
  f.model_types = {"gemma"};
  ModelConfig& c = f.usual;
  c.layers = 28;
  c.width = 3072;
  c.heads = c.key_heads = 16;
  c.head_width = 256;
  c.mlp_width = 24576;
  c.vocabulary = 256000;
  c.positions = 8192;
  c.activation = Activation::gelu_tanh;
  c.tied_embeddings = true;
  c.norm_form = NormForm::rms_one_plus;
  c.embedding_scale = std::sqrt(3072.0);
  f.keys.mlp_bias = {};
  f.read = [](const ConfigReader& r, ModelConfig& g) {
    g.embedding_scale = std::sqrt(static_cast<double>(g.width));
    // the first releases say gelu and mean its approximation
    if (r.text("hidden_act", "") == "gelu")
      g.activation = Activation::gelu_tanh;
  };
  return f;
}

}  // namespace lipscope
