#include "lipscope/model/families/families.h"

namespace lipscope {
// Attention and MLP beside each other behind one norm, heads that are rotated
// in part, in planes of neighbours.
Family gptj_family() {
  Family f = gpt2_family();
  f.model_types = {"gptj"};
  ModelConfig& c = f.usual;
  c.layers = 28;
  c.width = 4096;
  c.heads = 16;
  c.mlp_width = 16384;
  c.vocabulary = 50400;
  c.positions = 2048;
  c.rope = Rotary{.width = 64};
  c.rope_interleaved = true;
  c.tied_embeddings = c.attention_bias = c.output_bias = false;
  c.parallel = c.shared_norm = c.head_bias = true;
  c.projections = Projections::apart;
  f.refusals.clear();
  f.outer.positions.clear();
  f.layer.joined.clear();
  f.layer.query = "attn.q_proj";
  f.layer.key = "attn.k_proj";
  f.layer.value = "attn.v_proj";
  f.layer.output = "attn.out_proj";
  f.layer.up = "mlp.fc_in";
  f.layer.down = "mlp.fc_out";
  f.layer.mlp_norm.clear();
  f.stored_in_out = false;
  f.shrunk.clear();
  f.read = [](const ConfigReader& r, ModelConfig& g) {
    if (r.is_null({"rotary_dim"}))
      r.refuse("rotary_dim", nullptr, "expected a whole number");
    g.rope->width = r.count({"rotary_dim"}, 64, g.head_width);
  };
  return f;
}

}  // namespace lipscope
