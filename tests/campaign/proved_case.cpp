// What is proved of the attention of a layer at an input, and of the residual
// and block around it: every kind, mask and position, weights that saturate.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "lipscope/attention/kinds.h"
#include "lipscope/theory/layer_certificates.h"
#include "tests/campaign/case.h"
#include "tests/campaign/draw.h"
#include "tests/campaign/measured.h"

namespace lipscope::campaign {
namespace {

constexpr Certificate proofs[] = {Certificate::leading_apart,
                                  Certificate::exact_norm,
                                  Certificate::split_paths};

struct ProvedLayer {
  LayerWeights layer;
  MapName map = MapName::attn;
  ModelMapOptions options;
  MapPtr<double> f;
  std::optional<LayerCertificates> certificates;
  std::string of;  // "attn(sigmoid, rotary)"

  bool around() const {
    return map == MapName::residual || map == MapName::block;
  }
  double reached(const Matrix& x, bool quick) const {
    if (around()) return two_norm(materialize(*f->linearize(x)), quick);
    const ChosenAttention chosen =
        chosen_attention(layer, map == MapName::attn, options);
    return two_norm(reference_jacobian(chosen.weights, chosen.options, x),
                    quick);
  }
  bool mixed(const Matrix& x) const {
    if (around()) return x.rows() > 1;
    const ChosenAttention chosen = chosen_attention(layer, true, options);
    return scores_differ(chosen.weights, chosen.options, x);
  }
  std::vector<Claim> claims(const Matrix& x,
                            std::optional<std::size_t> only) const {
    const double norm = reached(x, only.has_value());
    std::vector<Claim> all;
    for (std::size_t number = 0; number < std::size(proofs); ++number) {
      if (only && *only != number) continue;
      const auto bound = certificates->at(x, proofs[number]);
      all.push_back({name_of(proofs[number]) + ": " + of, norm,
                     bound ? bound->value : HUGE_VAL, only || mixed(x)});
    }
    return all;
  }
};

MlpWeights draw_mlp(Index d, Dice& dice) {
  const Index m = dice.size(6);
  MlpWeights mlp;
  mlp.up = std::exp(0.7 * dice.normal()) * dice.gaussian(d, m);
  mlp.down = std::exp(0.7 * dice.normal()) * dice.gaussian(m, d);
  if (dice.chance(0.5)) mlp.up_bias = flatten(dice.gaussian(1, m));
  mlp.activation = dice.chance(0.5) ? Activation::gelu : Activation::silu;
  return mlp;
}

// scores: rotary positions, q/k-norm, numbers for distances, or none of these
std::string draw_scores(LayerWeights& layer, bool rotary, Dice& dice) {
  const Kind kind = layer.kind;
  std::string what = rotary ? ", rotary" : "";
  if (rotary) layer.rope = Rotary{.theta = dice.log_uniform(2.0, 1e4)};
  if (kind == Kind::l2 || kind == Kind::sigmoid) return what;
  if (dice.chance(0.2)) {
    layer.query_key_norm = draw_query_key_norm(layer.attention, dice);
    what += ", q/k-norm";
  }
  if (dice.chance(0.1)) {
    layer.relative_bias =
        RelativeBias{.table = std::exp(dice.normal()) *
                              dice.gaussian(8, layer.attention.heads),
                     .furthest = 6};
    what += ", relative";
  }
  return what;
}

}  // namespace

Case proved_case(Dice dice) {
  const auto p = std::make_shared<ProvedLayer>();
  constexpr Kind kinds[] = {Kind::dot,     Kind::dot,      Kind::dot,
                            Kind::sigmoid, Kind::sigmoid,  Kind::l2,
                            Kind::cosine,  Kind::l2_untied};
  constexpr MapName maps[] = {MapName::attn, MapName::attn, MapName::core,
                              MapName::residual, MapName::block};
  LayerWeights& layer = p->layer;
  const Kind kind = layer.kind = kinds[dice.pick(8)];
  p->map = maps[dice.pick(5)];
  const bool rotary = kind_of(kind).no_rope.empty() && dice.chance(0.2);
  const Index d = 1 + dice.size(5), n = dice.tokens(10);
  // (a bias of values only shifts what a softmax gives)
  layer.attention =
      draw_weights({.kind = kind,
                    .d = d,
                    .even = rotary,
                    .value_bias = kind == Kind::sigmoid || kind == Kind::cosine,
                    .square = true},
                   dice);
  const std::string scores = draw_scores(layer, rotary, dice);
  layer.mask = dice.chance(0.3)   ? draw_mask(n, dice)
               : dice.chance(0.5) ? Mask::none
                                  : Mask::causal;
  constexpr NormPlace places[] = {NormPlace::pre, NormPlace::post,
                                  NormPlace::none};
  layer.norm = p->around() ? places[dice.pick(3)] : NormPlace::none;
  if (layer.norm != NormPlace::none) {
    layer.attention_norm = draw_norm(d, dice);
    layer.mlp_norm = draw_norm(d, dice);
  }
  const bool free = layer.pre_norm();
  if (p->map == MapName::block) layer.mlp = draw_mlp(d, dice);
  Matrix x = draw_tokens(layer.attention, kind, n, dice);
  if (dice.chance(0.3))
    make_logits(layer.attention, kind, radius_of(x),
                dice.log_uniform(10.0, 1e6));
  const double longest =
      free ? norm_layer_radius(layer.attention_norm) : radius_of(x);
  keep_logits_small(layer.attention, kind, longest);
  keep_distances_known(layer.attention, kind, longest);
  p->options.threads = 1;
  if (kind == Kind::cosine) p->options.cosine = draw_scales(dice);
  if (!p->around() && !layer.query_key_norm && dice.chance(0.2))
    p->options.heads = {dice.pick(layer.attention.heads)};
  p->f = layer_map<double>(layer, p->map, p->options);
  p->certificates.emplace(layer, p->map, p->options);
  p->of = fmt::format("{}({}{})", name_of(p->map), name_of(kind), scores);
  const double R = radius_of(x);
  return {
      .what = fmt::format("{} mask {} norm {} n {} d {} heads {}", p->of,
                          name_of(layer.mask), static_cast<int>(layer.norm), n,
                          d, layer.attention.heads),
      .x = std::move(x),
      .confined =
          [R, free](Matrix y) { return free ? y : within(std::move(y), R); },
      .claims =
          [p](const Matrix& y, std::optional<std::size_t> only) {
            return p->claims(y, only);
          }};
}

}  // namespace lipscope::campaign
