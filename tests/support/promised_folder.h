#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "lipscope/core/rng.h"
#include "lipscope/io/safetensors.h"
#include "lipscope/model/language_model_config.h"
#include "tests/io/test_files.h"

/// Folders of models with position heads, heads apart and other joins, as
/// `lipscope train` writes them, with random weights.
namespace lipscope::test {

using NamedMatrices = std::map<std::string, Matrix>;

inline std::string promised_config_json(const LanguageModelConfig& c) {
  nlohmann::json j{{"model_type", "lipscope"},
                   {"mixer", name_of(c.mixer)},
                   {"num_layers", c.layers},
                   {"width", c.width},
                   {"num_heads", c.heads},
                   {"mlp_width", c.hidden},
                   {"activation", name_of(c.activation)},
                   {"norm", name_of(c.norm)},
                   {"position_heads", c.position_heads},
                   {"heads_apart", c.heads_apart},
                   {"positions", name_of(c.positions)},
                   {"residual", name_of(c.join)},
                   {"context", c.context}};
  if (c.join == Join::convex) j["residual_share"] = c.join_share;
  if (c.head_bias) j["head_bias"] = true;
  j["characters"] = nlohmann::json::array();
  for (Index i = 0; i < c.characters; ++i) j["characters"].push_back(97 + i);
  return j.dump();
}

/// All tensors, of numbers that F32 holds.
inline NamedMatrices promised_tensors(const LanguageModelConfig& c,
                                      std::uint64_t seed) {
  NamedMatrices all;
  const Rng rng(seed);
  const auto add = [&](const std::string& name, Index rows, Index cols) {
    all[name] = (0.5 * gaussian(rows, cols, rng.split(all.size())))
                    .cast<float>()
                    .cast<double>();
  };
  const Index k = c.width / c.heads;
  const Index comparing = (c.heads - c.position_heads) * k;
  add("wte.weight", c.characters, c.width);
  if (c.positions == Positions::table) add("wpe.weight", c.context, c.width);
  add("lm_head.weight", c.width, c.characters);
  if (c.head_bias) add("lm_head.bias", 1, c.characters);
  for (Index l = 0; l < c.layers; ++l) {
    const std::string at = "h." + std::to_string(l) + ".";
    if (c.position_heads > 0) {
      add(at + "attn.p.bias", c.position_heads, c.context);
      add(at + "attn.p.v.weight", c.width, c.position_heads * k);
    }
    if (c.heads_apart) add(at + "attn.share", 1, c.heads);
    if (!c.heads_apart) add(at + "attn.o.weight", comparing, c.width);
    if (c.mixer == Mixer::l2) {
      add(at + "attn.q.weight", c.width, comparing);
      add(at + "attn.v.weight", c.width, comparing);
    } else if (comparing > 0) {
      add(at + "attn.qkv.weight", c.width, 3 * comparing);
    }
    add(at + "mlp.up.weight", c.width, c.hidden);
    add(at + "mlp.up.bias", 1, c.hidden);
    add(at + "mlp.down.weight", c.hidden, c.width);
    add(at + "mlp.down.bias", 1, c.width);
  }
  return all;
}

inline void write_promised(const std::filesystem::path& folder,
                           const LanguageModelConfig& c,
                           const NamedMatrices& tensors) {
  write_file(folder / "config.json", promised_config_json(c));
  write_safetensors(folder / "model.safetensors", tensors, "F32");
}

}  // namespace lipscope::test
