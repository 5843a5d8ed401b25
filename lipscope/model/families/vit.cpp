#include "lipscope/model/families/families.h"

namespace lipscope {
// A pre-norm encoder that reads patches of an image in place of tokens.
Family vit_family() {
  Family f = bert_family();
  f.model_types = {"vit"};
  f.prefixes = {"vit."};
  f.usual.vocabulary = 1;  // it has no tokens
  f.usual.positions = 197;
  f.usual.token_types = 0;
  f.usual.norm = NormPlace::pre;
  f.keys.vocabulary = f.keys.positions = f.keys.token_types = {};
  f.keys.decoder = {};
  f.keys.attention_bias = {"qkv_bias"};
  f.outer = {.final_norm = "layernorm"};
  f.layer.query = "attention.attention.query";
  f.layer.key = "attention.attention.key";
  f.layer.value = "attention.attention.value";
  f.layer.attention_norm = "layernorm_before";
  f.layer.mlp_norm = "layernorm_after";
  f.read = nullptr;
  return f;
}

}  // namespace lipscope
