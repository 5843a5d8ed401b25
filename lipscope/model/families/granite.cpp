#include "lipscope/model/families/families.h"

namespace lipscope {
// Llama with factors of the embeddings, the scores, the residual branches and
// the logits.
Family granite_family() {
  Family f = llama_family();
  f.model_types = {"granite"};
  f.usual.score_scale = 1.0;
  f.read = [](const ConfigReader& r, ModelConfig& c) {
    c.embedding_scale = r.positive({"embedding_multiplier"}, 1.0);
    c.score_scale = r.positive({"attention_multiplier"}, 1.0);
    c.residual_scale = r.positive({"residual_multiplier"}, 1.0);
    c.logit_scale = 1.0 / r.positive({"logits_scaling"}, 1.0);
  };
  return f;
}

}  // namespace lipscope
