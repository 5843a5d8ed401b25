#include "lipscope/model/families/families.h"

namespace lipscope {
// Llama with norms that have no parameters.
Family olmo_family() {
  Family f = llama_family();
  f.model_types = {"olmo"};
  f.usual.vocabulary = 50304;
  f.usual.epsilon = 1e-5;
  f.usual.norm_form = NormForm::layer_unscaled;
  f.keys.epsilon = f.keys.mlp_bias = {};
  f.refusals = {{"clip_qkv", "a limit on queries, keys and values"}};
  return f;
}

}  // namespace lipscope
