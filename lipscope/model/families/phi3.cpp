#include "lipscope/model/families/families.h"

namespace lipscope {
// Llama with q, k and v in one matrix, and the gate with the MLP's first.
Family phi3_family() {
  Family f = llama_family();
  f.model_types = {"phi3"};
  f.usual.width = 3072;
  f.usual.mlp_width = 8192;
  f.usual.vocabulary = 32064;
  f.usual.positions = 4096;
  f.usual.epsilon = 1e-5;
  f.usual.projections = Projections::side_by_side;
  f.keys.attention_bias = f.keys.output_bias = f.keys.mlp_bias = {};
  f.keys.rotary_share = {"partial_rotary_factor"};
  f.keys.window = {"sliding_window"};
  f.layer.query.clear();
  f.layer.key.clear();
  f.layer.value.clear();
  f.layer.joined = "self_attn.qkv_proj";
  f.layer.up.clear();
  f.layer.gate.clear();
  f.layer.joined_gate = "mlp.gate_up_proj";
  return f;
}

}  // namespace lipscope
