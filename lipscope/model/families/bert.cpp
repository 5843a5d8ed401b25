#include "lipscope/model/families/families.h"

namespace lipscope {
Family bert_family() {
  Family f;
  f.model_types = {"bert"};
  f.prefixes = {"bert."};
  f.usual.key_heads = f.usual.head_width = 0;
  f.keys.token_types = {"type_vocab_size"};
  f.keys.epsilon = {"layer_norm_eps"};
  f.keys.decoder = {"is_decoder"};
  f.outer = {.tokens = "embeddings.word_embeddings",
             .positions = "embeddings.position_embeddings",
             .types = "embeddings.token_type_embeddings",
             .embedding_norm = "embeddings.LayerNorm"};
  f.layer = {.at = "encoder.layer.{}.",
             .query = "attention.self.query",
             .key = "attention.self.key",
             .value = "attention.self.value",
             .output = "attention.output.dense",
             .up = "intermediate.dense",
             .down = "output.dense",
             .attention_norm = "attention.output.LayerNorm",
             .mlp_norm = "output.LayerNorm"};
  f.read = [](const ConfigReader& r, ModelConfig&) {
    if (r.text("position_embedding_type", "absolute") != "absolute")
      r.refuse("position_embedding_type", *r.find("position_embedding_type"),
               "only absolute positions are supported");
  };
  return f;
}

}  // namespace lipscope
