#include "lipscope/model/families/families.h"

namespace lipscope {
// Qwen2 with normed queries and keys.
Family qwen3_family() {
  Family f = qwen2_family();
  f.model_types = {"qwen3"};
  f.usual.attention_bias = false;
  f.usual.head_width = 128;
  f.usual.query_key_norm = QueryKeyNormForm::each_head;
  f.keys.attention_bias = f.keys.output_bias = {"attention_bias"};
  f.layer.query_norm = "self_attn.q_norm";
  f.layer.key_norm = "self_attn.k_norm";
  return f;
}

}  // namespace lipscope
