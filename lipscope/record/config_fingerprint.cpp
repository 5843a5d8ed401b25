#include "lipscope/record/config_fingerprint.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "lipscope/io/sha256.h"

namespace lipscope {
namespace {

using nlohmann::json;

json or_null(const std::optional<double>& value) {
  return value ? json(*value) : json();
}

}  // namespace

// every member, or this does not compile
std::string fingerprint(const ModelConfig& config) {
  const auto& [architecture, layers, width, heads, key_heads, head_width,
               mlp_width, vocabulary, positions, token_types, epsilon,
               activation, rope_theta, tied_embeddings, attention_bias,
               mlp_bias, norm, kind, contractive, contraction] = config;
  return sha256_text(json{{"architecture", name_of(architecture)},
                          {"layers", layers},
                          {"width", width},
                          {"heads", heads},
                          {"key_heads", key_heads},
                          {"head_width", head_width},
                          {"mlp_width", mlp_width},
                          {"vocabulary", vocabulary},
                          {"positions", positions},
                          {"token_types", token_types},
                          {"epsilon", epsilon},
                          {"activation", name_of(activation)},
                          {"rope_theta", or_null(rope_theta)},
                          {"tied_embeddings", tied_embeddings},
                          {"attention_bias", attention_bias},
                          {"mlp_bias", mlp_bias},
                          {"norm", name_of(norm)},
                          {"kind", name_of(kind)},
                          {"contractive", contractive},
                          {"contraction", or_null(contraction)}}
                         .dump());
}

}  // namespace lipscope
