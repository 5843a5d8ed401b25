#include "lipscope/model/families/families.h"

namespace lipscope {
Family llama_family() {
  Family f;
  f.model_types = {"llama"};
  f.prefixes = {"model."};
  f.ignores_window = true;
  ModelConfig& c = f.usual;
  c.layers = c.heads = 32;
  c.key_heads = c.head_width = 0;
  c.width = 4096;
  c.mlp_width = 11008;
  c.vocabulary = 32000;
  c.positions = 2048;
  c.token_types = 0;
  c.epsilon = 1e-6;
  c.activation = Activation::silu;
  c.rope = Rotary{};
  c.tied_embeddings = c.attention_bias = c.output_bias = c.mlp_bias = false;
  c.norm = NormPlace::pre;
  c.norm_form = NormForm::rms;
  c.causal = c.gated = true;
  f.keys.key_heads = {"num_key_value_heads"};
  f.keys.head_width = {"head_dim"};
  f.keys.epsilon = {"rms_norm_eps"};
  f.keys.attention_bias = f.keys.output_bias = {"attention_bias"};
  f.keys.mlp_bias = {"mlp_bias"};
  f.outer = {.tokens = "embed_tokens", .final_norm = "norm", .head = "lm_head"};
  f.layer = {.at = "layers.{}.",
             .query = "self_attn.q_proj",
             .key = "self_attn.k_proj",
             .value = "self_attn.v_proj",
             .output = "self_attn.o_proj",
             .up = "mlp.up_proj",
             .down = "mlp.down_proj",
             .gate = "mlp.gate_proj",
             .attention_norm = "input_layernorm",
             .mlp_norm = "post_attention_layernorm"};
  return f;
}

}  // namespace lipscope
