#include "lipscope/model/families/families.h"

namespace lipscope {
// BERT with RoBERTa's positions and a bias of the scores by distance, which all
// layers share.
Family mpnet_family() {
  Family f = bert_family();
  f.model_types = {"mpnet"};
  f.prefixes = {"mpnet."};
  f.usual.vocabulary = 30527;
  f.usual.token_types = 0;
  f.usual.padding = 1;
  f.usual.position_offset = 2;
  f.usual.relative_buckets = 32;
  f.keys.token_types = f.keys.decoder = {};
  f.outer.types.clear();
  f.outer.relative_bias = "encoder.relative_attention_bias";
  f.layer.query = "attention.attn.q";
  f.layer.key = "attention.attn.k";
  f.layer.value = "attention.attn.v";
  f.layer.output = "attention.attn.o";
  f.layer.attention_norm = "attention.LayerNorm";
  f.read = [](const ConfigReader& r, ModelConfig& c) {
    // transformers takes token 1 for padding, whatever pad_token_id says
    c.positions -= c.position_offset;
    // transformers reads its table with 32, whatever this says
    if (r.count({"relative_attention_num_buckets"}, 32, most_wide) != 32)
      r.refuse("relative_attention_num_buckets",
               *r.find("relative_attention_num_buckets"), "expected 32");
  };
  return f;
}

}  // namespace lipscope
