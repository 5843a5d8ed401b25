#include "lipscope/model/families/families.h"

namespace lipscope {
// Llama with a window.
Family mistral_family() {
  Family f = llama_family();
  f.model_types = {"mistral"};
  f.usual.key_heads = 8;
  f.usual.mlp_width = 14336;
  f.usual.positions = 131072;
  f.usual.window = 4096;
  f.keys.attention_bias = f.keys.output_bias = f.keys.mlp_bias = {};
  f.keys.window = {"sliding_window"};
  return f;
}

}  // namespace lipscope
