#include "lipscope/train/language_model.h"

#include "lipscope/core/errors.h"
#include "lipscope/train/cross_entropy.h"
#include "lipscope/train/dropout.h"
#include "lipscope/train/quiet_start.h"

namespace lipscope {
namespace {

// places of dropout: those of block i are 2i and 2i + 1
constexpr std::uint64_t after_embedding = ~std::uint64_t{0};

TransformerBlockShape block_shape(const LanguageModelConfig& c) {
  return {.mixing = {.attention =
                         {.kind = compares(c.mixer) ? attention_kind(c.mixer)
                                                    : Kind::dot,
                          .contractive = c.mixer == Mixer::contractive_l2,
                          .contraction = c.contraction.value_or(1.0),
                          .by_coordinate = c.division == Division::coordinate,
                          .width = c.width,
                          .heads = c.heads - c.position_heads,
                          .rotary = c.positions == Positions::rotary,
                          .relative = c.positions == Positions::relative,
                          .context = c.context,
                          .layers = c.layers,
                          .quiet = c.quiet_gain.has_value()},
                     .position_heads = c.position_heads,
                     .apart = c.heads_apart},
          .hidden = c.hidden,
          .activation = c.activation,
          .norm = c.norm,
          .join = c.join,
          .join_share = c.join_share,
          .contraction = c.contraction,
          .quiet_gain = c.quiet_gain};
}

// of the characters, where it is not the usual one
std::optional<Initial> embedding_start(const LanguageModelConfig& c) {
  if (!c.quiet_gain || c.mixer == Mixer::lstm) return {};
  const double size = loud_size(c.width);
  return loud_characters(
      c.width, c.norm == NormPlace::pre ? size / *c.quiet_gain : size);
}

bool has_position_table(const LanguageModelConfig& c) {
  return c.mixer != Mixer::lstm && c.positions == Positions::table;
}

const LanguageModelConfig& sound(const LanguageModelConfig& config) {
  require_sound(config);
  return config;
}

}  // namespace

template <class Real>
LanguageModel<Real>::LanguageModel(const LanguageModelConfig& config)
    : config_(sound(config)),
      embedding_(layout_, config.characters,
                 has_position_table(config) ? config.context : 0, config.width,
                 embedding_start(config)),
      head_([&]() -> LinearLayer<Real> {
        const bool lstm = config.mixer == Mixer::lstm;
        for (Index i = 0; i < config.layers; ++i) {
          const std::string name = "h." + std::to_string(i);
          if (lstm)
            lstms_.emplace_back(layout_, name, config.width);
          else
            blocks_.emplace_back(layout_, name, block_shape(config));
        }
        if (!lstm && config.norm == NormPlace::pre)
          last_norm_.emplace(layout_, "ln_f", config.width);
        return {layout_, "lm_head", config.width, config.characters,
                config.head_bias};
      }()),
      x_(lstms_.size() + 1) {}

template <class Real>
MatrixOf<Real> LanguageModel<Real>::embedded(const VectorOf<Real>& weights,
                                             std::span<const int> characters,
                                             const Pass& pass) const {
  require(weights.size() == layout_.size(),
          "language model: {} weights, it has {}", weights.size(),
          layout_.size());
  require(static_cast<Index>(characters.size()) == pass.rows() &&
              pass.length <= config_.context,
          "language model: {} characters for {} sequences of {}, the context "
          "is {}",
          characters.size(), pass.sequences, pass.length, config_.context);
  for (const int c : characters)
    require(c >= 0 && c < config_.characters,
            "language model: character {} of {}", c, config_.characters);
  return embedding_.forward(weights, characters, pass);
}

template <class Real>
const MatrixOf<Real>& LanguageModel<Real>::forward(
    const VectorOf<Real>& weights, std::span<const int> characters,
    const Pass& pass) {
  x_[0] = embedded(weights, characters, pass);
  dropout(x_[0], after_embedding, pass);
  last_ = &x_[0];
  for (std::size_t i = 0; i < blocks_.size(); ++i)
    last_ = &blocks_[i].forward(weights, *last_, static_cast<Index>(i), pass);
  for (std::size_t i = 0; i < lstms_.size(); ++i) {
    x_[i + 1] = lstms_[i].forward(weights, x_[i], pass);
    dropout(x_[i + 1], i, pass);
    last_ = &x_[i + 1];
  }
  if (last_norm_) last_ = &last_norm_->forward(weights, *last_, pass.threads);
  logits_.resize(pass.rows(), config_.characters);
  head_.forward(weights, view(*last_), view(logits_), pass);
  return logits_;
}

template <class Real>
void LanguageModel<Real>::backward(const VectorOf<Real>& weights,
                                   VectorOf<Real>& gradients,
                                   std::span<const int> characters,
                                   std::span<const int> targets,
                                   const Pass& pass) {
  require(static_cast<Index>(targets.size()) == logits_.rows(),
          "language model: {} targets for {} logits", targets.size(),
          logits_.rows());
  gradients.resize(layout_.size());
  const MatrixOf<Real> glogits =
      cross_entropy_backward(logits_, targets, pass.threads);
  g_.resize(pass.rows(), config_.width);
  head_.backward(weights, gradients, view(*last_), view(glogits), view(g_),
                 pass);
  if (last_norm_) last_norm_->backward(weights, gradients, g_, pass.threads);
  for (std::size_t i = lstms_.size(); i-- > 0;) {
    dropout(g_, i, pass);
    g_ = lstms_[i].backward(weights, gradients, g_, pass);
  }
  for (std::size_t i = blocks_.size(); i-- > 0;)
    blocks_[i].backward(weights, gradients, g_, static_cast<Index>(i), pass);
  dropout(g_, after_embedding, pass);
  embedding_.backward(gradients, characters, g_, pass);
}

template <class Real>
std::vector<const MixingLayer<Real>*> LanguageModel<Real>::mixing() const {
  std::vector<const MixingLayer<Real>*> layers;
  for (const TransformerBlock<Real>& block : blocks_)
    layers.push_back(&block.mixing());
  return layers;
}

template class LanguageModel<float>;
template class LanguageModel<double>;

}  // namespace lipscope
