#include <cmath>

#include "lipscope/model/families/families.h"

namespace lipscope {
// Gemma with norms ahead of attention and MLP and behind them, normed queries
// and keys, and layers with a window, which have a θ of their own.
Family gemma3_family() {
  Family f = gemma_family();
  f.model_types = {"gemma3_text"};
  ModelConfig& c = f.usual;
  c.layers = 26;
  c.width = 2304;
  c.heads = 8;
  c.key_heads = 4;
  c.mlp_width = 9216;
  c.vocabulary = 262208;
  c.positions = 131072;
  c.rope = Rotary{.theta = 1e6};
  c.local_theta = 1e4;
  c.window = 4096;
  c.output_norms = true;
  c.query_key_norm = QueryKeyNormForm::each_head;
  c.score_scale = 1.0 / 16.0;
  c.embedding_scale = std::sqrt(2304.0);
  f.keys.activation = {"hidden_activation"};
  f.keys.window = {"sliding_window"};
  f.reads_layer_types = true;
  f.layer.mlp_norm = "pre_feedforward_layernorm";
  f.layer.attention_output_norm = "post_attention_layernorm";
  f.layer.mlp_output_norm = "post_feedforward_layernorm";
  f.layer.query_norm = "self_attn.q_norm";
  f.layer.key_norm = "self_attn.k_norm";
  f.read = [](const ConfigReader& r, ModelConfig& g) {
    g.embedding_scale = std::sqrt(static_cast<double>(g.width));
    g.score_scale = 1.0 / std::sqrt(r.positive({"query_pre_attn_scalar"}, 256));
    if (r.find("rope_local_base_freq"))
      g.local_theta = r.positive({"rope_local_base_freq"}, 1e4);
    if (!g.window)
      r.refuse("sliding_window", nullptr, "expected a whole number");
    const Index pattern = r.count(
        {"sliding_window_pattern", "_sliding_window_pattern"}, 6, most_layers);
    read_local_layers(r, g, [&](Index l) { return (l + 1) % pattern != 0; });
  };
  return f;
}

}  // namespace lipscope
