#include <algorithm>

#include "lipscope/model/families/families.h"

namespace lipscope {
// Llama with layers that are not rotated; if there is a window, they have it.
Family smollm3_family() {
  Family f = llama_family();
  f.model_types = {"smollm3"};
  f.usual.layers = 36;
  f.usual.width = 2048;
  f.usual.heads = 16;
  f.usual.key_heads = 4;
  f.usual.vocabulary = 128256;
  f.usual.positions = 32768;
  f.usual.rope = Rotary{.theta = 2'000'000.0};
  f.usual.tied_embeddings = true;
  for (Index l = 3; l < 36; l += 4) f.usual.unrotated.push_back(l);
  f.keys.window = {"sliding_window"};
  f.keys.use_window = {"use_sliding_window"};
  f.reads_layer_types = true;
  f.read = [](const ConfigReader& r, ModelConfig& c) {
    c.unrotated.clear();
    const nlohmann::json* rotated = r.find("no_rope_layers");
    const Index every = r.count({"no_rope_layer_interval"}, 4, most_layers);
    if (rotated != nullptr &&
        (!rotated->is_array() ||
         rotated->size() != static_cast<std::size_t>(c.layers)))
      r.refuse("no_rope_layers", *rotated, "expected 0 or 1 for each layer");
    for (Index l = 0; l < c.layers; ++l) {
      if (rotated == nullptr) {
        if ((l + 1) % every == 0) c.unrotated.push_back(l);
        continue;
      }
      const nlohmann::json& one = (*rotated)[static_cast<std::size_t>(l)];
      if (one != 0 && one != 1)
        r.refuse("no_rope_layers", one, "expected 0 or 1 for each layer");
      if (one == 0) c.unrotated.push_back(l);
    }
    read_local_layers(r, c, [&](Index l) {
      return std::find(c.unrotated.begin(), c.unrotated.end(), l) !=
             c.unrotated.end();
    });
  };
  return f;
}

}  // namespace lipscope
