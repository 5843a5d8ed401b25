#include "lipscope/theory/stack_constant.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "lipscope/attention/kinds.h"
#include "lipscope/core/errors.h"
#include "lipscope/model/stack.h"
#include "lipscope/theory/centred_slopes.h"
#include "lipscope/theory/layer_bounds.h"
#include "lipscope/theory/mlp_bound.h"
#include "lipscope/theory/norms.h"
#include "lipscope/theory/position_heads_bound.h"

namespace lipscope {
namespace {

constexpr double room = 1.0 + 0x1p-40;  // for products that round both ways

bool is_there(const NormWeights& norm) { return norm.gain.size() > 0; }

// Whether W_O brings no two heads to the same coordinate; one head has nobody
// to meet.
bool write_apart(const AttentionWeights& w) {
  const Index rows = w.value_width();
  for (Index j = 0; j < w.output.cols(); ++j) {
    Index writers = 0;
    for (Index h = 0; h < w.heads; ++h)
      if (!w.output.col(j).segment(h * rows, rows).isZero(0.0)) ++writers;
    if (writers > 1) return false;
  }
  return w.heads > 1 && w.output.size() > 0;
}

// |f(0)| of the attention and ‖x ↦ what its values make of a mean‖
struct Reach {
  double at_zero = 0.0;
  Magnitude slope;
};

Reach reach_of(const AttentionWeights& w) {
  Magnitude sum = 0.0, projected = 0.0, squares = 0.0;
  Vector zero = w.output_bias.size() > 0
                    ? w.output_bias
                    : Vector(Vector::Zero(w.output.cols()));
  for (Index h = 0; h < w.heads; ++h) {
    const HeadWeights one = head(w, h);
    const Magnitude through =
        product_norm_above(one.value, one.output.transpose());
    sum = sum + through;
    projected = projected + through * through;
    const Magnitude value = weight_norm_above(one.value);
    squares = squares + value * value;
    zero += one.output.transpose() * one.value_bias;
  }
  if (write_apart(w)) sum = smaller(sum, root(projected));
  return {well_above(length_above(zero) * room),
          smaller(sum, root(squares) * weight_norm_above(w.output))};
}

// |mlp(0)|
double at_zero(const MlpWeights& w) {
  const Matrix y = Mlp<double>(w, 1)(Matrix::Zero(1, w.up.rows()));
  return well_above(longest_row(y) * room);
}

bool compares_tokens(const LayerWeights& layer) {
  return layer.attention.heads > 0;
}

// whether its attention has a bound over a ball alone
bool needs_ball(const LayerWeights& layer) {
  return compares_tokens(layer) && kind_bounds(layer.kind).over_ball;
}

// Of the position heads and of those that compare: constants, or lengths, of
// what they write.
Magnitude both(const LayerWeights& layer, Magnitude position,
               Magnitude comparing) {
  const AttentionWeights& w = layer.attention;
  const bool apart =
      w.output.leftCols(layer.position_heads->value.cols()).isZero(0.0) &&
      (w.output_bias.size() == 0 ||
       w.output_bias.head(layer.position_heads->value.cols()).isZero(0.0));
  return apart ? root(position * position + comparing * comparing)
               : position + comparing;
}

Magnitude times_share(const LayerWeights& layer, Magnitude inner) {
  return layer.residual_scale == 1.0 ? inner : inner * layer.residual_scale;
}

// of carry x + share f(x)
Magnitude joined(const LayerWeights& layer, Magnitude inner) {
  return Magnitude(layer.carry) + times_share(layer, inner);
}

class Product {
 public:
  Product(const Stack& stack, const StackConstantOptions& options)
      : stack_(stack), norm_(options.norm), radius_(options.radius) {
    if (radius_) {
      require(*radius_ > 0.0 && std::isfinite(*radius_),
              "stack_constant: a radius of {}", *radius_);
      tokens_ = TokenSet{.radius = *radius_};
    }
    for (const LayerWeights& layer : stack.layers)
      ball_ = ball_ || needs_ball(layer);
  }

  StackConstant run() {
    Magnitude product = 1.0;
    Index number = 0;
    for (const LayerWeights& layer : stack_.layers) {
      const std::optional<Magnitude> block = through(layer, number++);
      if (!block) return std::move(found_);
      product = product * *block;
    }
    if (stack_.last_norm)
      product = product * add(number, "last_norm", "norm gain",
                              norm_layer_everywhere(*stack_.last_norm));
    found_.hidden = product;
    if (stack_.head.size() > 0)
      found_.logits = product * add(number, "head", "weight norms",
                                    weight_norm_above(stack_.head));
    if (by_radius_) found_.scope = InputSet::ball(*radius_);
    return std::move(found_);
  }

 private:
  Magnitude add(Index layer, const char* part, const std::string& bound,
                Magnitude value,
                const InputSet& scope = InputSet::everywhere()) {
    found_.parts.push_back({layer, part, bound, scope, value});
    return value;
  }

  // the constant of a block; nothing if its attention has none
  std::optional<Magnitude> through(const LayerWeights& layer, Index number) {
    const bool normed = is_there(layer.attention_norm);
    require(is_there(layer.mlp_norm) == normed,
            "stack_constant: layer {} has one norm of two", number);
    const std::optional<Magnitude> attention = all_heads(layer, number);
    if (!attention) return {};
    BlockParts parts{*attention, 1.0, 1.0, 1.0};
    if (normed)
      parts.attention_norm = add(number, "attention_norm", "norm gain",
                                 norm_layer_everywhere(layer.attention_norm));
    parts.mlp = mlp_lipschitz(layer.mlp, Norm::two);
    Magnitude fed = joined(layer, parts.mlp);  // without a norm
    const std::optional<Magnitude> centred = by_centred_slopes(layer);
    if (centred && *centred < fed) {
      fed = add(number, "mlp", "centred slopes", *centred);
    } else {
      add(number, "mlp", "weight norms", parts.mlp);
    }
    if (normed)
      parts.mlp_norm = add(number, "mlp_norm", "norm gain",
                           norm_layer_everywhere(layer.mlp_norm));
    follow(layer, fed);
    if (layer.plain_form())
      return layer_bound(parts, MapName::block, layer.pre_norm());
    if (!normed) return joined(layer, parts.attention) * fed;
    if (layer.pre_norm())
      return joined(layer, parts.attention * parts.attention_norm) *
             joined(layer, parts.mlp * parts.mlp_norm);
    return parts.attention_norm * joined(layer, parts.attention) *
           parts.mlp_norm * joined(layer, parts.mlp);
  }

  // of the MLP and the residual around it, in layers of other forms than x +
  // f(x) that have no norms
  static std::optional<Magnitude> by_centred_slopes(const LayerWeights& layer) {
    if (layer.plain_form() || is_there(layer.mlp_norm) ||
        layer.mlp.activation == Activation::max_min)
      return std::nullopt;
    return centred_slopes(layer.mlp, layer.carry, layer.residual_scale);
  }

  // the constant of the attention, which has one part or two
  std::optional<Magnitude> all_heads(const LayerWeights& layer, Index number) {
    std::optional<Magnitude> position;
    if (layer.position_heads)
      position = add(number, "position_heads", "convolution",
                     position_heads_lipschitz(*layer.position_heads, norm_));
    if (!compares_tokens(layer)) return position;
    const std::optional<Bound> found = attention_bound(layer, number);
    if (!found) return {};
    const Magnitude comparing = add(number, "attention", found->name,
                                    magnitude_of(*found), found->scope);
    return position ? both(layer, *position, comparing) : comparing;
  }

  std::optional<Bound> attention_bound(const LayerWeights& layer,
                                       Index number) {
    BoundSetting setting{.kind = layer.kind,
                         .mask = Mask::causal,
                         .n = stack_.context,
                         .rope = layer.rope.has_value(),
                         .relative_bias = layer.relative_bias};
    if (!kind_bounds(layer.kind).add)
      return nothing(number, fmt::format("{} attention has no bound here",
                                         name_of(layer.kind)));
    if (needs_ball(layer)) {
      std::optional<TokenSet> read = tokens_;
      if (layer.pre_norm() && is_there(layer.attention_norm))
        read = behind(layer.attention_norm);
      if (!read)
        return nothing(
            number, fmt::format("{} attention with no norm ahead of it has a "
                                "bound over a ball of given radius only",
                                name_of(layer.kind)));
      if (!std::isfinite(read->radius))
        return nothing(number, "tokens may be longer than a double can say");
      setting.radius = read->radius;
      setting.norm = read->norm;
      if (!read->norm) by_radius_ = true;
    }
    const std::optional<Bound> best =
        best_bound(bounds(layer.attention, setting), norm_);
    if (!best)
      return nothing(number,
                     fmt::format("{} attention has no bound in the norm {}",
                                 name_of(layer.kind), name_of(norm_)));
    if (!write_apart(layer.attention)) return best;
    const std::optional<Bound> apart = side_by_side(layer.attention, setting);
    return apart && magnitude_of(*apart) < magnitude_of(*best) ? apart : best;
  }

  // (Σ_h L_h²)^{1/2} of the constants of heads that write apart, by the name of
  // the largest
  std::optional<Bound> side_by_side(const AttentionWeights& w,
                                    BoundSetting setting) const {
    Magnitude squares = 0.0;
    std::optional<Bound> largest;
    for (Index h = 0; h < w.heads; ++h) {
      setting.heads = {h};
      const std::optional<Bound> one = best_bound(bounds(w, setting), norm_);
      if (!one) return std::nullopt;
      const Magnitude value = magnitude_of(*one);
      squares = squares + value * value;
      if (!largest || largest->log10 < one->log10) largest = one;
    }
    return make_bound({.name = largest->name,
                       .norm = norm_,
                       .mask = largest->mask,
                       .citation = largest->citation},
                      root(squares), largest->scope);
  }

  std::optional<Bound> nothing(Index number, const std::string& why) {
    found_.unbounded = fmt::format("layer {}, attention: {}", number, why);
    return {};
  }

  static TokenSet behind(const NormWeights& norm) {
    return {norm_layer_radius(norm), norm};
  }

  // where tokens are after the layer, if that matters and is known; `fed` is
  // the constant of the MLP with its residual
  void follow(const LayerWeights& layer, Magnitude fed) {
    if (!ball_ || layer.pre_norm()) return;
    if (is_there(layer.mlp_norm)) {
      tokens_ = behind(layer.mlp_norm);
      return;
    }
    if (!tokens_ || !std::isfinite(tokens_->radius)) return;
    const Magnitude after = attended(layer, tokens_->radius) * fed +
                            times_share(layer, Magnitude(at_zero(layer.mlp)));
    tokens_->radius = after.value();
    tokens_->norm.reset();
  }

  // how long tokens of this length can be after attention and its residual
  static Magnitude attended(const LayerWeights& layer, double radius) {
    const Magnitude R = radius;
    if (!layer.position_heads) {
      const Reach reach = reach_of(layer.attention);
      return R * joined(layer, reach.slope) +
             times_share(layer, Magnitude(reach.at_zero));
    }
    Magnitude made =
        position_heads_lipschitz(*layer.position_heads, Norm::token) * R;
    if (compares_tokens(layer)) {
      const Reach reach = reach_of(layer.attention);
      made = both(layer, made, reach.slope * R + reach.at_zero);
    }
    return R * layer.carry + times_share(layer, made);
  }

  const Stack& stack_;
  Norm norm_;
  std::optional<double> radius_;
  std::optional<TokenSet> tokens_;  // that enter the layer
  bool ball_ = false;               // some layer has a bound over a ball alone
  bool by_radius_ = false;
  StackConstant found_;
};

// what the product is proved for
void require_known(const LayerWeights& layer) {
  const bool rotated =
      layer.rope && compares_tokens(layer) && !kind_bounds(layer.kind).rope;
  require(layer.mask == Mask::causal && kind_of(layer.kind).shares() &&
              !rotated && !layer.query_key_norm && layer.mlp.gate.size() == 0 &&
              !layer.parallel && !layer.attention_unnormed &&
              layer.attention_output_norm.gain.size() == 0 &&
              layer.mlp_output_norm.gain.size() == 0,
          "stack_constant: the mask \"{}\" where causal is expected, {} "
          "attention, rotary positions, a gated MLP, or another form of "
          "layer",
          name_of(layer.mask), name_of(layer.kind));
  require(compares_tokens(layer) || layer.position_heads,
          "stack_constant: a layer without heads");
  if (layer.position_heads && compares_tokens(layer))
    require(layer.attention.output.cols() == layer.position_heads->width,
            "stack_constant: heads that compare write {} coordinates, position "
            "heads {}",
            layer.attention.output.cols(), layer.position_heads->width);
  require(layer.carry >= 0.0 && layer.residual_scale >= 0.0 &&
              std::isfinite(layer.carry + layer.residual_scale),
          "stack_constant: {} x + {} f(x)", layer.carry, layer.residual_scale);
}

}  // namespace

StackConstant stack_constant(const Stack& stack,
                             const StackConstantOptions& options) {
  require(!stack.layers.empty() && stack.context >= 1,
          "stack_constant: {} layers, a context of {}", stack.layers.size(),
          stack.context);
  require(options.norm == Norm::two || options.norm == Norm::token,
          "stack_constant: norm {}", name_of(options.norm));
  require(!stack.transform, "stack_constant: a head of masked tokens");
  for (const LayerWeights& layer : stack.layers) require_known(layer);
  return Product(stack, options).run();
}

}  // namespace lipscope
