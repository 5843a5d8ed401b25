#include "lipscope/model/families/families.h"

namespace lipscope {
Family distilbert_family() {
  Family f = bert_family();
  f.model_types = {"distilbert"};
  f.prefixes = {"distilbert."};
  f.usual.layers = 6;
  f.usual.token_types = 0;
  f.keys = {.layers = {"n_layers", "num_hidden_layers"},
            .width = {"dim", "hidden_size"},
            .heads = {"n_heads", "num_attention_heads"},
            .mlp_width = {"hidden_dim"},
            .activation = {"activation"}};
  f.outer.types.clear();
  f.layer = {.at = "transformer.layer.{}.",
             .query = "attention.q_lin",
             .key = "attention.k_lin",
             .value = "attention.v_lin",
             .output = "attention.out_lin",
             .up = "ffn.lin1",
             .down = "ffn.lin2",
             .attention_norm = "sa_layer_norm",
             .mlp_norm = "output_layer_norm"};
  f.read = nullptr;
  return f;
}

}  // namespace lipscope
