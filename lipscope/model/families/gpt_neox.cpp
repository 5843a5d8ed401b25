#include "lipscope/model/families/families.h"

namespace lipscope {
// GPT-NeoX and Pythia: attention and MLP beside each other, heads that are
// rotated in part.
Family gpt_neox_family() {
  Family f;
  f.model_types = {"gpt_neox"};
  f.prefixes = {"gpt_neox."};
  ModelConfig& c = f.usual;
  c.layers = 44;
  c.width = 6144;
  c.heads = 64;
  c.key_heads = c.head_width = 0;
  c.mlp_width = 24576;
  c.vocabulary = 50432;
  c.positions = 2048;
  c.token_types = 0;
  c.epsilon = 1e-5;
  c.rope = Rotary{};
  c.tied_embeddings = false;
  c.norm = NormPlace::pre;
  c.causal = c.parallel = true;
  c.projections = Projections::by_head;
  f.rotary_share = 0.25;
  f.keys.epsilon = {"layer_norm_eps"};
  f.keys.attention_bias = f.keys.output_bias = {"attention_bias"};
  f.keys.rope_theta = {"rotary_emb_base", "rope_theta"};
  f.keys.rotary_share = {"rotary_pct", "partial_rotary_factor"};
  f.keys.parallel = {"use_parallel_residual"};
  f.outer = {.tokens = "embed_in",
             .final_norm = "final_layer_norm",
             .head = "embed_out"};
  f.layer = {.at = "layers.{}.",
             .joined = "attention.query_key_value",
             .output = "attention.dense",
             .up = "mlp.dense_h_to_4h",
             .down = "mlp.dense_4h_to_h",
             .attention_norm = "input_layernorm",
             .mlp_norm = "post_attention_layernorm"};
  return f;
}

}  // namespace lipscope
