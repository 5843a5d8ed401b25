// Reads a model's config.json.

#include "lipscope/model/config.h"

#include "fuzz/fuzzing.h"

using namespace lipscope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  fuzz::may_refuse([&] {
    const ModelConfig c =
        parse_model_config(fuzz::text_of(data, size), "config.json");
    // what is accepted can be multiplied without a second thought
    require_sound(c);
    fuzz::hold(c.layers > 0 && c.heads > 0 && c.key_heads > 0 &&
                   c.heads % c.key_heads == 0 && c.head_width > 0,
               "the numbers fit each other");
    fuzz::hold(!c.rope || c.rope->width <= c.head_width,
               "no more features are rotated than there are");
    fuzz::hold(c.layer_groups <= c.layers && c.positions > 0,
               "every layer has weights");
  });
  return 0;
}
