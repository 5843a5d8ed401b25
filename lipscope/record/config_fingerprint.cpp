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
               position_heads, heads_apart, mlp_width, vocabulary, positions,
               token_types, epsilon, activation, rope, tied_embeddings,
               attention_bias, mlp_bias, norm, kind, contractive, contraction,
               divided_by_coordinate, causal, norm_form, output_norms,
               first_attention_unnormed, parallel, shared_norm, gated,
               projections, output_bias, query_key_norm, rope_interleaved,
               unrotated, window, local, local_theta, score_scale,
               residual_scale, carry, relative_buckets, distance_bias,
               layer_groups, embedding_width, position_table, position_offset,
               padding, embedding_scale, head_bias, logit_scale] = config;
  json all = json{{"architecture", name_of(architecture)},
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
                  {"rope_theta", rope ? json(rope->theta) : json()},
                  {"tied_embeddings", tied_embeddings},
                  {"attention_bias", attention_bias},
                  {"mlp_bias", mlp_bias},
                  {"norm", name_of(norm)},
                  {"kind", name_of(kind)},
                  {"contractive", contractive},
                  {"contraction", or_null(contraction)}};
  // What only some families have stands there where it is not what the family
  // has without a config.json: fingerprints of the first three stay the same.
  const ModelConfig usual = usual_config(architecture);
  const auto add = [&](const char* name, const json& value, bool same) {
    if (!same) all[name] = value;
  };
  const auto add_number = [&](const char* name, auto value, auto as_usual) {
    add(name, json(value), value == as_usual);
  };
  if (rope && *rope != Rotary{.theta = rope->theta})
    all["rope"] = {rope->width, rope->factor,
                   rope->slow ? json{rope->slow->context, rope->slow->slow,
                                     rope->slow->fast}
                              : json()};
  add_number("divided_by_coordinate", divided_by_coordinate,
             usual.divided_by_coordinate);
  add_number("causal", causal, usual.causal);
  add_number("norm_form", static_cast<int>(norm_form),
             static_cast<int>(usual.norm_form));
  add_number("output_norms", output_norms, usual.output_norms);
  add_number("first_attention_unnormed", first_attention_unnormed,
             usual.first_attention_unnormed);
  add_number("parallel", parallel, usual.parallel);
  add_number("shared_norm", shared_norm, usual.shared_norm);
  add_number("gated", gated, usual.gated);
  add_number("projections", static_cast<int>(projections),
             static_cast<int>(usual.projections));
  if (output_bias != attention_bias)
    add_number("output_bias", output_bias, usual.output_bias);
  add_number("query_key_norm", static_cast<int>(query_key_norm),
             static_cast<int>(usual.query_key_norm));
  add_number("rope_interleaved", rope_interleaved, usual.rope_interleaved);
  add_number("unrotated", unrotated, usual.unrotated);
  add("local_theta", or_null(local_theta), local_theta == usual.local_theta);
  add_number("local", local, usual.local);
  add("score_scale", or_null(score_scale), score_scale == usual.score_scale);
  add_number("residual_scale", residual_scale, usual.residual_scale);
  add_number("carry", carry, usual.carry);
  add_number("position_heads", position_heads, usual.position_heads);
  add_number("heads_apart", heads_apart, usual.heads_apart);
  add_number("position_table", position_table, usual.position_table);
  add("window", window ? json(*window) : json(), window == usual.window);
  add_number("relative_buckets", relative_buckets, usual.relative_buckets);
  add_number("distance_bias", distance_bias, usual.distance_bias);
  add_number("layer_groups", layer_groups, usual.layer_groups);
  add_number("embedding_width", embedding_width, usual.embedding_width);
  add_number("position_offset", position_offset, usual.position_offset);
  add("padding", padding ? json(*padding) : json(), padding == usual.padding);
  add_number("embedding_scale", embedding_scale, usual.embedding_scale);
  add_number("head_bias", head_bias, usual.head_bias);
  add_number("logit_scale", logit_scale, usual.logit_scale);
  return sha256_text(all.dump());
}

}  // namespace lipscope
