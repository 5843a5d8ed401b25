#include "lipscope/model/families/families.h"

namespace lipscope {
// Attention and MLP beside each other behind one norm, heads that are rotated
// in part.
Family phi_family() {
  Family f = llama_family();
  f.model_types = {"phi"};
  ModelConfig& c = f.usual;
  c.layers = 24;
  c.width = 2048;
  c.mlp_width = 8192;
  c.vocabulary = 51200;
  c.epsilon = 1e-5;
  c.activation = Activation::gelu_tanh;
  c.attention_bias = c.output_bias = c.mlp_bias = c.head_bias = true;
  c.norm_form = NormForm::layer;
  c.gated = false;
  c.parallel = c.shared_norm = true;
  f.rotary_share = 0.5;
  f.keys.epsilon = {"layer_norm_eps"};
  f.keys.head_width = {};
  f.keys.attention_bias = f.keys.output_bias = f.keys.mlp_bias = {};
  f.keys.rotary_share = {"partial_rotary_factor"};
  f.outer.final_norm = "final_layernorm";
  f.layer.output = "self_attn.dense";
  f.layer.up = "mlp.fc1";
  f.layer.down = "mlp.fc2";
  f.layer.gate.clear();
  f.layer.mlp_norm.clear();
  return f;
}

}  // namespace lipscope
