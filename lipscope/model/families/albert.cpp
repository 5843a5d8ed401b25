#include "lipscope/model/families/families.h"

namespace lipscope {
// BERT whose layers share their weights, behind narrower embeddings.
Family albert_family() {
  Family f = bert_family();
  f.model_types = {"albert"};
  f.prefixes = {"albert."};
  f.usual.width = 4096;
  f.usual.heads = 64;
  f.usual.mlp_width = 16384;
  f.usual.vocabulary = 30000;
  f.usual.embedding_width = 128;
  f.usual.layer_groups = 1;
  f.usual.activation = Activation::gelu_tanh;
  f.keys.embedding_width = {"embedding_size"};
  f.keys.decoder = {};
  f.outer.embedding_projection = "encoder.embedding_hidden_mapping_in";
  f.layer = {.at = "encoder.albert_layer_groups.{}.albert_layers.0.",
             .query = "attention.query",
             .key = "attention.key",
             .value = "attention.value",
             .output = "attention.dense",
             .up = "ffn",
             .down = "ffn_output",
             .attention_norm = "attention.LayerNorm",
             .mlp_norm = "full_layer_layer_norm"};
  f.read = [](const ConfigReader& r, ModelConfig& c) {
    bert_family().read(r, c);
    c.layer_groups = r.count({"num_hidden_groups"}, 1, c.layers);
    if (r.count({"inner_group_num"}, 1, c.layers) != 1)
      r.refuse("inner_group_num", *r.find("inner_group_num"),
               "several layers in a group are not supported");
  };
  return f;
}

}  // namespace lipscope
