#include "lipscope/model/families/families.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace lipscope {
namespace {

const std::vector<std::pair<Architecture, Family>>& all_families() {
  static const std::vector<std::pair<Architecture, Family>> all = {
      {Architecture::gpt2, gpt2_family()},
      {Architecture::bert, bert_family()},
      {Architecture::llama, llama_family()},
      {Architecture::roberta, roberta_family()},
      {Architecture::distilbert, distilbert_family()},
      {Architecture::electra, electra_family()},
      {Architecture::albert, albert_family()},
      {Architecture::mpnet, mpnet_family()},
      {Architecture::mistral, mistral_family()},
      {Architecture::qwen2, qwen2_family()},
      {Architecture::qwen3, qwen3_family()},
      {Architecture::gpt_neox, gpt_neox_family()},
      {Architecture::opt, opt_family()},
      {Architecture::phi, phi_family()},
      {Architecture::phi3, phi3_family()},
      {Architecture::stablelm, stablelm_family()},
      {Architecture::smollm3, smollm3_family()},
      {Architecture::granite, granite_family()},
      {Architecture::olmo, olmo_family()},
      {Architecture::olmo2, olmo2_family()},
      {Architecture::gemma, gemma_family()},
      {Architecture::gemma3, gemma3_family()},
      {Architecture::gptj, gptj_family()},
      {Architecture::modernbert, modernbert_family()},
      {Architecture::vit, vit_family()},
      {Architecture::lipscope, lipscope_family()}};
  return all;
}

}  // namespace

const Family& family_of(Architecture architecture) {
  for (const auto& [each, family] : all_families())
    if (each == architecture) return family;
  throw std::invalid_argument("family_of: no such architecture");
}

std::optional<Architecture> architecture_named(std::string_view model_type) {
  for (const auto& [architecture, family] : all_families())
    if (std::find(family.model_types.begin(), family.model_types.end(),
                  model_type) != family.model_types.end())
      return architecture;
  return std::nullopt;
}

std::string known_model_types() {
  std::vector<std::string> names;
  for (const auto& [architecture, family] : all_families())
    names.insert(names.end(), family.model_types.begin(),
                 family.model_types.end());
  std::string all;
  for (std::size_t i = 0; i < names.size(); ++i)
    all += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  return all;
}

}  // namespace lipscope
