// Residuals and blocks of a transformer: certificates at the input, and bounds
// over all that norm layers let through.

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <utility>

#include "lipscope/theory/layer_bounds.h"
#include "lipscope/theory/layer_certificates.h"
#include "tests/campaign/case.h"
#include "tests/campaign/draw.h"
#include "tests/campaign/measured.h"

namespace lipscope::campaign {
namespace {

struct LayerProblem {
  LayerWeights layer;
  MapName map = MapName::block;
  Kind kind = Kind::dot;
  MapPtr<double> f;
  std::optional<LayerCertificates> certificates;
  std::optional<double> everywhere;  // over what the norm ahead lets through
  std::string name;

  double reached(const Matrix& x, bool quick) const {
    return two_norm(materialize(*f->linearize(x)), quick);
  }
  double at(const Matrix& x) const {
    const auto b = certificates->at(x, certificates->usual(x.rows()));
    return b ? b->value : INFINITY;
  }
};

MlpWeights draw_mlp(Index d, bool may_gate, Dice& dice) {
  const Index m = dice.size(6);
  MlpWeights mlp;
  mlp.up = std::exp(0.7 * dice.normal()) * dice.gaussian(d, m);
  mlp.down = std::exp(0.7 * dice.normal()) * dice.gaussian(m, d);
  if (may_gate && dice.chance(0.4)) mlp.gate = dice.gaussian(d, m);
  if (dice.chance(0.5)) mlp.up_bias = flatten(dice.gaussian(1, m));
  constexpr Activation all[] = {Activation::gelu, Activation::gelu_tanh,
                                Activation::relu, Activation::silu};
  mlp.activation = all[dice.pick(4)];
  return mlp;
}

}  // namespace

Case layer_case(Dice dice, bool masked) {
  const auto p = std::make_shared<LayerProblem>();
  constexpr Kind kinds[] = {Kind::dot, Kind::dot, Kind::l2, Kind::cosine,
                            Kind::sigmoid};
  p->kind = kinds[dice.pick(5)];
  p->map = dice.chance(0.5) ? MapName::residual : MapName::block;
  const bool rotary = p->kind == Kind::dot && dice.chance(0.25);
  const Index d = 1 + dice.size(4), n = dice.tokens(6);
  LayerWeights& layer = p->layer;
  const bool softmax = p->kind == Kind::dot || p->kind == Kind::l2;
  layer.attention = draw_weights({.kind = p->kind,
                                  .d = d,
                                  .heads = 2,
                                  .even = rotary,
                                  .value_bias = !softmax,
                                  .square = true},
                                 dice);
  layer.kind = p->kind;
  layer.mask = dice.chance(0.5) ? Mask::none : Mask::causal;
  if (masked) layer.mask = draw_mask(n, dice);
  constexpr NormPlace places[] = {NormPlace::pre, NormPlace::post,
                                  NormPlace::none};
  layer.norm = places[dice.pick(3)];
  if (rotary) layer.rope = Rotary{.theta = dice.log_uniform(2.0, 1e4)};
  const bool normed = layer.norm != NormPlace::none;
  if (normed) {
    layer.attention_norm = draw_norm(d, dice);
    layer.mlp_norm = draw_norm(d, dice);
  }
  if (layer.norm == NormPlace::pre)
    keep_logits_small(layer.attention, p->kind,
                      norm_layer_radius(layer.attention_norm));
  layer.mlp = draw_mlp(d, normed, dice);
  const ModelMapOptions options{
      .kind = p->kind,
      .cosine = {.tau = dice.log_uniform(0.1, 10.0),
                 .nu = dice.log_uniform(0.1, 10.0),
                 .epsilon = dice.log_uniform(1e-4, 1.0)},
      .threads = 1};
  p->f = layer_map<double>(layer, p->map, options);
  p->certificates.emplace(layer, p->map, options);
  Matrix x = draw_tokens(layer.attention, p->kind, n, dice);
  const double R = radius_of(x);
  p->name = fmt::format("{}({}{}{})", name_of(p->map), name_of(p->kind),
                        rotary ? ", rotary" : "", masked ? ", masked" : "");
  // in a pre-norm layer every input passes a norm: the bound holds everywhere;
  // in the others over the ball
  const TokenSet tokens =
      layer.pre_norm() ? TokenSet{norm_layer_radius(layer.attention_norm),
                                  layer.attention_norm}
                       : TokenSet{R, {}};
  const std::optional<Bound> attention =
      best_bound(attention_bounds(layer, true, options, n, tokens), Norm::two);
  if (attention && std::isfinite(attention->value))
    p->everywhere =
        layer_bound(parts_everywhere(layer, p->map, attention->value), p->map,
                    layer.pre_norm())
            .value();
  const bool free = layer.pre_norm();
  return {
      .what =
          fmt::format("{} mask {} norm {} n {} d {}", p->name,
                      name_of(layer.mask), static_cast<int>(layer.norm), n, d),
      .x = std::move(x),
      .confined =
          [R, free](Matrix y) { return free ? y : within(std::move(y), R); },
      .claims =
          [p](const Matrix& y, std::optional<std::size_t> only) {
            const double reached = p->reached(y, only.has_value());
            std::vector<Claim> claims;
            if (!only || *only == 0)
              claims.push_back(
                  {"at X: " + p->name, reached, p->at(y), y.rows() > 1});
            if (p->everywhere && (!only || *only == 1))
              claims.push_back(
                  {p->name, reached, *p->everywhere, y.rows() > 1});
            return claims;
          }};
}

}  // namespace lipscope::campaign
