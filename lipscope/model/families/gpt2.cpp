#include "lipscope/model/families/families.h"

namespace lipscope {
Family gpt2_family() {
  Family f;
  f.model_types = {"gpt2"};
  f.prefixes = {"transformer."};
  f.usual.vocabulary = 50257;
  f.usual.positions = 1024;
  f.usual.token_types = 0;
  f.usual.epsilon = 1e-5;
  f.usual.activation = Activation::gelu_tanh;
  f.usual.norm = NormPlace::pre;
  f.usual.causal = true;
  f.usual.projections = Projections::side_by_side;
  f.usual.key_heads = f.usual.head_width = 0;
  f.mlp_of_width = true;
  f.keys.layers = {"n_layer", "num_hidden_layers"};
  f.keys.width = {"n_embd", "hidden_size"};
  f.keys.heads = {"n_head", "num_attention_heads"};
  f.keys.mlp_width = {"n_inner"};
  f.keys.positions = {"n_positions", "max_position_embeddings"};
  f.keys.epsilon = {"layer_norm_epsilon"};
  f.keys.activation = {"activation_function"};
  f.refusals = {{"scale_attn_weights", "attention without 1/sqrt(k)", true},
                {"scale_attn_by_inverse_layer_idx",
                 "attention scaled by the layer", false}};
  f.outer = {.tokens = "wte",
             .positions = "wpe",
             .final_norm = "ln_f",
             .head = "lm_head"};
  f.layer = {.at = "h.{}.",
             .joined = "attn.c_attn",
             .output = "attn.c_proj",
             .up = "mlp.c_fc",
             .down = "mlp.c_proj",
             .attention_norm = "ln_1",
             .mlp_norm = "ln_2"};
  f.stored_in_out = true;
  f.shrunk = "c_proj.weight";
  return f;
}

}  // namespace lipscope
