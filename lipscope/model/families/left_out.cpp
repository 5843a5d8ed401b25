#include <algorithm>
#include <iterator>

#include "lipscope/model/family.h"

namespace lipscope {
namespace {

struct LeftOut {
  const char* why;  ///< with the setting of config.json that says it
  std::vector<std::string_view> model_types;
};

const std::vector<LeftOut>& all_left_out() {
  static const std::vector<LeftOut> all = {
      {"its scores and logits are capped (attn_logit_softcapping, "
       "final_logit_softcapping)",
       {"gemma2"}},
      {"it has images beside the text; its text model alone is gemma3_text",
       {"gemma3"}},
      {"its attention compares contents and positions apart (pos_att_type)",
       {"deberta", "deberta-v2"}},
      {"its scores have a bias that falls with the distance (ALiBi)",
       {"bloom", "mpt"}},
      {"its heads share keys (multi_query, new_decoder_architecture) or its "
       "scores have a bias that falls with the distance (alibi)",
       {"falcon"}},
      {"its heads share one key (multi_query)", {"gpt_bigcode"}},
      {"its scores are not divided by sqrt(k), and layers differ "
       "(attention_types)",
       {"gpt_neo"}},
      {"its attention is sparse (attention_window)", {"longformer"}},
      {"its attention is sparse (attention_type)",
       {"big_bird", "bigbird_pegasus"}},
      {"its scores compare contents and distances apart", {"xlnet"}},
      {"it is an encoder-decoder model with cross-attention "
       "(is_encoder_decoder)",
       {"t5", "mt5", "umt5", "byt5", "longt5", "switch_transformers", "t5gemma",
        "bart", "mbart", "pegasus", "marian", "m2m_100", "blenderbot",
        "blenderbot-small", "led", "whisper", "speech_to_text",
        "encoder-decoder", "vision-encoder-decoder"}},
      {"its MLP is a mixture of experts (num_experts, num_local_experts, "
       "n_routed_experts)",
       {"mixtral", "qwen2_moe", "qwen3_moe", "olmoe", "phimoe", "dbrx",
        "deepseek_v2", "deepseek_v3", "gpt_oss", "granitemoe", "llama4_text",
        "ernie4_5_moe", "glm4_moe"}},
      {"it has no attention", {"mamba", "mamba2", "falcon_mamba", "rwkv"}},
      {"some of its layers have no attention",
       {"jamba", "bamba", "zamba", "zamba2", "recurrent_gemma", "qwen3_next",
        "nemotron_h", "falcon_h1", "granitemoehybrid"}},
      {"it is several models in one, for images or sound and for text",
       {"clip", "siglip", "blip", "llava", "llava_next", "mllama", "paligemma",
        "llama4", "qwen2_vl", "qwen2_5_vl", "qwen3_vl", "gemma3n", "gemma4"}},
      {"what its attention and its MLP give is multiplied by weights of their "
       "own (layerscale_value)",
       {"dinov2", "dinov2_with_registers"}},
      {"what its attention and its MLP give is multiplied by weights of their "
       "own (layer_scale_init_value)",
       {"beit"}},
      {"its attention is within windows of an image that shift from layer to "
       "layer (window_size)",
       {"swin", "swinv2"}}};
  return all;
}

}  // namespace

std::optional<std::string> why_left_out(std::string_view model_type) {
  for (const LeftOut& each : all_left_out())
    if (std::find(each.model_types.begin(), each.model_types.end(),
                  model_type) != each.model_types.end())
      return each.why;
  return std::nullopt;
}

}  // namespace lipscope
