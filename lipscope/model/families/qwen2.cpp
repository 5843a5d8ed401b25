#include "lipscope/model/families/families.h"

namespace lipscope {
// Llama with biases of q, k and v, and a window of the later layers that is
// mostly switched off.
Family qwen2_family() {
  Family f = llama_family();
  f.model_types = {"qwen2"};
  f.usual.mlp_width = 22016;
  f.usual.vocabulary = 151936;
  f.usual.positions = 32768;
  f.usual.attention_bias = true;
  f.usual.key_heads = 32;
  f.keys.attention_bias = f.keys.output_bias = f.keys.mlp_bias = {};
  f.usual.window = 4096;
  f.keys.window = {"sliding_window"};
  f.keys.use_window = {"use_sliding_window"};
  f.reads_layer_types = true;
  f.read = [](const ConfigReader& r, ModelConfig& c) {
    const Index first = r.count({"max_window_layers"}, 28, most_entries, 0);
    read_local_layers(r, c, [&](Index l) { return l >= first; });
  };
  return f;
}

}  // namespace lipscope
