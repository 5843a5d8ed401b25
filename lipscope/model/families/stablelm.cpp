#include "lipscope/model/families/families.h"

namespace lipscope {
// Llama with LayerNorms and heads that are rotated in part.
Family stablelm_family() {
  Family f = llama_family();
  f.model_types = {"stablelm"};
  f.usual.width = 2560;
  f.usual.mlp_width = 6912;
  f.usual.vocabulary = 50304;
  f.usual.positions = 4096;
  f.usual.key_heads = 32;
  f.usual.epsilon = 1e-5;
  f.usual.norm_form = NormForm::layer;
  f.rotary_share = 0.25;
  f.keys.epsilon = {"layer_norm_eps"};
  f.keys.head_width = {};
  f.keys.attention_bias = {"use_qkv_bias"};
  f.keys.output_bias = f.keys.mlp_bias = {};
  f.keys.rotary_share = {"partial_rotary_factor"};
  f.keys.parallel = {"use_parallel_residual"};
  // beside each other they read one norm
  f.read = [](const ConfigReader&, ModelConfig& c) {
    c.shared_norm = c.parallel;
  };
  return f;
}

}  // namespace lipscope
