#include "lipscope/model/families/families.h"

namespace lipscope {
// Llama with norms behind attention and MLP, and one of all queries and keys of
// a token.
Family olmo2_family() {
  Family f = llama_family();
  f.model_types = {"olmo2"};
  f.usual.vocabulary = 50304;
  f.usual.epsilon = 1e-5;
  f.usual.norm = NormPlace::none;
  f.usual.output_norms = true;
  f.usual.query_key_norm = QueryKeyNormForm::over_heads;
  f.keys.mlp_bias = {};
  f.layer.attention_norm.clear();
  f.layer.mlp_norm.clear();
  f.layer.attention_output_norm = "post_attention_layernorm";
  f.layer.mlp_output_norm = "post_feedforward_layernorm";
  f.layer.query_norm = "self_attn.q_norm";
  f.layer.key_norm = "self_attn.k_norm";
  return f;
}

}  // namespace lipscope
