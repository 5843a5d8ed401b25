#include "lipscope/model/families/families.h"

namespace lipscope {
// BERT behind embeddings that may be narrower.
Family electra_family() {
  Family f = bert_family();
  f.model_types = {"electra"};
  f.prefixes = {"electra."};
  f.usual.width = 256;
  f.usual.heads = 4;
  f.usual.mlp_width = 1024;
  f.usual.embedding_width = 128;
  f.keys.embedding_width = {"embedding_size"};
  f.outer.embedding_projection = "embeddings_project";
  f.read = [](const ConfigReader& r, ModelConfig& c) {
    bert_family().read(r, c);
    if (c.embedding_width == c.width) c.embedding_width = 0;
  };
  return f;
}

}  // namespace lipscope
