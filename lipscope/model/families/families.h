#pragma once

#include "lipscope/model/family.h"

namespace lipscope {

Family albert_family();
Family bert_family();
Family distilbert_family();
Family electra_family();
Family gemma_family();
Family gemma3_family();
Family gpt2_family();
Family gpt_neox_family();
Family gptj_family();
Family modernbert_family();
Family vit_family();
Family granite_family();
Family lipscope_family();
Family llama_family();
Family mistral_family();
Family mpnet_family();
Family olmo_family();
Family olmo2_family();
Family opt_family();
Family phi_family();
Family phi3_family();
Family qwen2_family();
Family qwen3_family();
Family roberta_family();
Family smollm3_family();
Family stablelm_family();

}  // namespace lipscope
