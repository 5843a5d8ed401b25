#include "lipscope/model/families/families.h"

namespace lipscope {
Family opt_family() {
  Family f;
  f.model_types = {"opt"};
  f.prefixes = {"model.decoder.", "decoder."};
  ModelConfig& c = f.usual;
  c.key_heads = c.head_width = 0;
  c.vocabulary = 50272;
  c.positions = 2048;
  c.position_offset = 2;
  c.token_types = 0;
  c.epsilon = 1e-5;
  c.activation = Activation::relu;
  c.norm = NormPlace::pre;
  c.causal = true;
  f.keys.mlp_width = {"ffn_dim"};
  f.keys.activation = {"activation_function"};
  f.keys.attention_bias = f.keys.output_bias =
      f.keys.mlp_bias = {"enable_bias"};
  f.refusals = {{"_remove_final_layer_norm", "OPT without its last norm"},
                {"layer_norm_elementwise_affine",
                 "OPT with norms that have no parameters", true}};
  f.outer = {.tokens = "embed_tokens",
             .positions = "embed_positions",
             .final_norm = "final_layer_norm",
             .head = "lm_head"};
  f.layer = {.at = "layers.{}.",
             .query = "self_attn.q_proj",
             .key = "self_attn.k_proj",
             .value = "self_attn.v_proj",
             .output = "self_attn.out_proj",
             .up = "fc1",
             .down = "fc2",
             .attention_norm = "self_attn_layer_norm",
             .mlp_norm = "final_layer_norm"};
  f.read = [](const ConfigReader& r, ModelConfig& o) {
    if (!r.flag({"do_layer_norm_before"}, true)) o.norm = NormPlace::post;
    if (r.count({"word_embed_proj_dim"}, o.width, most_wide) != o.width)
      r.refuse("word_embed_proj_dim", *r.find("word_embed_proj_dim"),
               "OPT with embeddings that are projected is not supported");
  };
  return f;
}

}  // namespace lipscope
