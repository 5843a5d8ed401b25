#include "lipscope/cli/fingerprint.h"

#include <fmt/format.h>

#include <bit>
#include <nlohmann/json.hpp>

#include "lipscope/io/sha256.h"

namespace lipscope::cli {
namespace {

using nlohmann::json;

json or_null(const std::optional<double>& value) {
  return value ? json(*value) : json();
}

}  // namespace

std::string fingerprint(std::span<const Index> ids) {
  return sha256_text(fmt::format("{}", fmt::join(ids, " ")));
}

std::string fingerprint(const Matrix& x) {
  static_assert(std::endian::native == std::endian::little);
  std::string bytes = fmt::format("{} {}\n", x.rows(), x.cols());
  // row-major, without gaps
  bytes.append(reinterpret_cast<const char*>(x.data()),
               static_cast<std::size_t>(x.size()) * sizeof(double));
  return sha256_text(bytes);
}

std::string fingerprint(std::span<const std::string> texts) {
  std::string all;
  for (const std::string& text : texts)
    all += fmt::format("{}:{}", text.size(), text);
  return sha256_text(all);
}

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

}  // namespace lipscope::cli
