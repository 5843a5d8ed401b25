#include "lipscope/train/model_stack.h"

#include <fmt/format.h>

#include <utility>

#include "lipscope/core/errors.h"
#include "lipscope/model/contraction.h"

namespace lipscope {
namespace {

template <class Real>
class Reader {
 public:
  Reader(const Layout& layout, const VectorOf<Real>& weights)
      : layout_(layout), weights_(weights) {}

  Matrix matrix(const std::string& name) const {
    return tensor(weights_, layout_.slot(name)).template cast<double>();
  }
  Vector row(const std::string& name) const {
    return matrix(name).row(0).transpose();
  }
  NormWeights norm(const std::string& name) const {
    return {.gain = row(name + ".weight"),
            .bias = row(name + ".bias"),
            .epsilon = NormLayer<Real>::epsilon};
  }

 private:
  const Layout& layout_;
  const VectorOf<Real>& weights_;
};

}  // namespace

template <class Real>
Stack stack_of(const LanguageModel<Real>& model,
               const VectorOf<Real>& weights) {
  const LanguageModelConfig& c = model.config();
  require(c.mixer != Mixer::lstm, "stack_of: an LSTM is no stack of attention");
  const Reader<Real> read(model.layout(), weights);
  Stack stack{.context = c.context, .head = read.matrix("lm_head.weight")};
  for (const MixingLayer<Real>* mixing : model.mixing()) {
    const std::string name = fmt::format("h.{}.", stack.layers.size());
    LayerWeights layer{
        .attention = mixing->exported(weights),
        .position_heads = mixing->exported_position_heads(weights),
        .mlp = {.up = read.matrix(name + "mlp.up.weight"),
                .down = read.matrix(name + "mlp.down.weight"),
                .up_bias = read.row(name + "mlp.up.bias"),
                .down_bias = read.row(name + "mlp.down.bias"),
                .activation = c.activation},
        .norm = c.norm,
        .residual_scale = c.join == Join::convex ? c.join_share : 1.0,
        .carry = c.join == Join::add    ? 1.0
                 : c.join == Join::none ? 0.0
                                        : 1.0 - c.join_share,
        .mask = Mask::causal,
        .kind = mixing->shape().attention.kind};
    if (c.positions == Positions::rotary) layer.rope = Rotary{};
    layer.relative_bias = mixing->exported_relative_bias(weights);
    if (c.contraction) {
      const MlpWeights& mlp = layer.mlp;
      layer.mlp.down *=
          *c.contraction /
          mlp_contraction<double>({view(mlp.up), view(mlp.down)}, c.activation);
    }
    if (c.norm != NormPlace::none) {
      layer.attention_norm = read.norm(name + "ln_1");
      layer.mlp_norm = read.norm(name + "ln_2");
    }
    stack.layers.push_back(std::move(layer));
  }
  if (c.norm == NormPlace::pre) stack.last_norm = read.norm("ln_f");
  if (c.head_bias) stack.head_bias = read.row("lm_head.bias");
  return stack;
}

template Stack stack_of(const LanguageModel<float>&, const VectorOf<float>&);
template Stack stack_of(const LanguageModel<double>&, const VectorOf<double>&);

}  // namespace lipscope
