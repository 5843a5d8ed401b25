#include "lipscope/theory/stack_constant.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "lipscope/attention/kinds.h"
#include "lipscope/core/errors.h"
#include "lipscope/model/stack.h"
#include "lipscope/theory/layer_bounds.h"
#include "lipscope/theory/mlp_bound.h"
#include "lipscope/theory/norms.h"

namespace lipscope {
namespace {

constexpr double room = 1.0 + 0x1p-40;  // for products that round both ways

bool is_there(const NormWeights& norm) { return norm.gain.size() > 0; }

// |f(0)| of the attention and ‖x ↦ what its values make of a mean‖
struct Reach {
  double at_zero = 0.0;
  Magnitude slope;
};

Reach reach_of(const AttentionWeights& w) {
  Magnitude sum = 0.0, squares = 0.0;
  Vector zero = w.output_bias.size() > 0
                    ? w.output_bias
                    : Vector(Vector::Zero(w.output.cols()));
  for (Index h = 0; h < w.heads; ++h) {
    const HeadWeights one = head(w, h);
    sum = sum + product_norm_above(one.value, one.output.transpose());
    const Magnitude value = weight_norm_above(one.value);
    squares = squares + value * value;
    zero += one.output.transpose() * one.value_bias;
  }
  return {well_above(length_above(zero) * room),
          smaller(sum, root(squares) * weight_norm_above(w.output))};
}

// |mlp(0)|
double at_zero(const MlpWeights& w) {
  const Matrix y = Mlp<double>(w, 1)(Matrix::Zero(1, w.up.rows()));
  return well_above(longest_row(y) * room);
}

class Product {
 public:
  Product(const Stack& stack, std::optional<double> radius)
      : stack_(stack), radius_(radius) {
    if (radius) {
      require(*radius > 0.0 && std::isfinite(*radius),
              "stack_constant: a radius of {}", *radius);
      tokens_ = TokenSet{.radius = *radius};
    }
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
    const std::optional<Bound> attention = attention_bound(layer, number);
    if (!attention) return {};
    BlockParts parts{1.0, 1.0, 1.0, 1.0};
    parts.attention = add(number, "attention", attention->name,
                          magnitude_of(*attention), attention->scope);
    if (normed)
      parts.attention_norm = add(number, "attention_norm", "norm gain",
                                 norm_layer_everywhere(layer.attention_norm));
    parts.mlp =
        add(number, "mlp", "weight norms", mlp_lipschitz(layer.mlp, Norm::two));
    if (normed)
      parts.mlp_norm = add(number, "mlp_norm", "norm gain",
                           norm_layer_everywhere(layer.mlp_norm));
    follow(layer, parts.mlp);
    return layer_bound(parts, MapName::block, layer.pre_norm());
  }

  std::optional<Bound> attention_bound(const LayerWeights& layer,
                                       Index number) {
    BoundSetting setting{
        .kind = layer.kind, .mask = Mask::causal, .n = stack_.context};
    if (!kind_bounds(layer.kind).add)
      return nothing(number, fmt::format("{} attention has no bound here",
                                         name_of(layer.kind)));
    if (kind_bounds(layer.kind).over_ball) {
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
    return best_bound(bounds(layer.attention, setting), Norm::two);
  }

  std::optional<Bound> nothing(Index number, const std::string& why) {
    found_.unbounded = fmt::format("layer {}, attention: {}", number, why);
    return {};
  }

  static TokenSet behind(const NormWeights& norm) {
    return {norm_layer_radius(norm), norm};
  }

  // where tokens are after the layer, if that matters and is known
  void follow(const LayerWeights& layer, Magnitude mlp) {
    if (!kind_bounds(layer.kind).over_ball || layer.pre_norm()) return;
    if (is_there(layer.mlp_norm)) {
      tokens_ = behind(layer.mlp_norm);
      return;
    }
    const Reach reach = reach_of(layer.attention);
    const Magnitude between =
        Magnitude(tokens_->radius) * residual_bound(reach.slope) +
        reach.at_zero;
    const Magnitude after = between * residual_bound(mlp) + at_zero(layer.mlp);
    tokens_->radius = after.value();
  }

  const Stack& stack_;
  std::optional<double> radius_;
  std::optional<TokenSet> tokens_;  // that enter the layer
  bool by_radius_ = false;
  StackConstant found_;
};

}  // namespace

StackConstant stack_constant(const Stack& stack, std::optional<double> radius) {
  require(!stack.layers.empty() && stack.context >= 1,
          "stack_constant: {} layers, a context of {}", stack.layers.size(),
          stack.context);
  for (const LayerWeights& layer : stack.layers)
    require(layer.mask == Mask::causal && kind_of(layer.kind).shares() &&
                layer.plain_scores() && layer.plain_form() &&
                layer.mlp.gate.size() == 0,
            "stack_constant: the mask \"{}\" where causal is expected, {} "
            "attention, rotary positions, a gated MLP, or another form of "
            "layer",
            name_of(layer.mask), name_of(layer.kind));
  return Product(stack, radius).run();
}

}  // namespace lipscope
