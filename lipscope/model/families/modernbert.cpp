#include "lipscope/model/families/families.h"

namespace lipscope {
// Pre-norm BERT with rotary positions and a gated MLP. Most layers have a
// window to both sides and a θ of their own; the first reads its input as the
// norm of the embeddings leaves it.
Family modernbert_family() {
  Family f;
  f.model_types = {"modernbert"};
  f.prefixes = {"model."};
  ModelConfig& c = f.usual;
  c.layers = 22;
  c.key_heads = c.head_width = 0;
  c.mlp_width = 1152;
  c.vocabulary = 50368;
  c.positions = 8192;
  c.token_types = 0;
  c.epsilon = 1e-5;
  c.rope = Rotary{.theta = 160'000.0};
  c.local_theta = 1e4;
  c.window = 65;
  c.attention_bias = c.output_bias = c.mlp_bias = false;
  c.norm = NormPlace::pre;
  c.norm_form = NormForm::layer_gain;
  c.first_attention_unnormed = true;
  c.gated = true;
  c.projections = Projections::side_by_side;
  f.keys.epsilon = {"norm_eps"};
  f.keys.activation = {"hidden_activation"};
  f.keys.attention_bias = f.keys.output_bias = {"attention_bias"};
  f.keys.mlp_bias = {"mlp_bias"};
  f.keys.rope_theta = {"global_rope_theta"};
  f.reads_layer_types = true;
  f.refusals = {{"rope_scaling", "ModernBERT with scaled positions"}};
  f.outer = {.tokens = "embeddings.tok_embeddings",
             .embedding_norm = "embeddings.norm",
             .final_norm = "final_norm"};
  f.layer = {.at = "layers.{}.",
             .joined = "attn.Wqkv",
             .output = "attn.Wo",
             .down = "mlp.Wo",
             .joined_gate = "mlp.Wi",
             .attention_norm = "attn_norm",
             .mlp_norm = "mlp_norm"};
  f.read = [](const ConfigReader& r, ModelConfig& m) {
    if (r.flag({"norm_bias"}, false)) m.norm_form = NormForm::layer;
    if (r.is_null({"local_rope_theta"}))
      r.refuse("local_rope_theta", nullptr, "expected a positive number");
    // what rope_parameters says comes first
    if (!r.find("rope_parameters"))
      m.local_theta = r.positive({"local_rope_theta"}, *m.local_theta);
    // so many on both sides together
    m.window = r.count({"local_attention"}, 128, most_entries) / 2 + 1;
    const Index every = r.count({"global_attn_every_n_layers"}, 3, most_layers);
    read_local_layers(r, m, [&](Index l) { return l % every != 0; });
  };
  return f;
}

}  // namespace lipscope
