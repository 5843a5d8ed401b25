#include "lipscope/model/families/families.h"

namespace lipscope {
// What `lipscope train` makes; its config.json has a reader of its own
// (model/language_model_config.h).
Family lipscope_family() {
  Family f;
  f.model_types = {"lipscope"};
  f.usual = model_config({.characters = 65});
  f.outer = {.tokens = "wte",
             .positions = "wpe",
             .final_norm = "ln_f",
             .head = "lm_head"};
  f.layer = {.at = "h.{}.",
             .query = "attn.q",
             .value = "attn.v",
             .joined = "attn.qkv",
             .output = "attn.o",
             .up = "mlp.up",
             .down = "mlp.down",
             .attention_norm = "ln_1",
             .mlp_norm = "ln_2",
             .position_bias = "attn.p.bias",
             .position_value = "attn.p.v",
             .share = "attn.share",
             .distance_bias = "attn.distance_bias"};
  f.stored_in_out = f.head_in_out = true;
  return f;
}

}  // namespace lipscope
