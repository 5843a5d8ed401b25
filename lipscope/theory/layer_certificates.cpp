#include "lipscope/theory/layer_certificates.h"

#include <cmath>
#include <utility>

#include "lipscope/core/errors.h"
#include "lipscope/theory/layer_bounds.h"
#include "lipscope/theory/mlp_bound.h"
#include "lipscope/theory/norm_layer_bound.h"
#include "lipscope/theory/norms.h"

namespace lipscope {
namespace {

// a layer that is head h of this one
AttentionWeights alone(const AttentionWeights& weights, Index h) {
  HeadWeights one = head(weights, h);
  return {.query = std::move(one.query),
          .key = std::move(one.key),
          .value = std::move(one.value),
          .output = std::move(one.output),
          .query_bias = std::move(one.query_bias),
          .key_bias = std::move(one.key_bias),
          .value_bias = std::move(one.value_bias),
          .output_bias = {}};
}

Matrix normed(const NormWeights& norm, const Matrix& x) {
  return LayerNorm<double>(norm)(x);
}

}  // namespace

struct LayerCertificates::Made {
  LayerWeights layer;  // of one chosen head that alone
  MapName map = MapName::attn;
  ModelMapOptions options;
  // of the attention; nothing where nothing is proved here
  std::optional<LocalCertificates> local;
  MapPtr<double> attention;  // for what it makes of x
  MapPtr<double> mlp;
  std::optional<MlpNorms> norms;

  bool around() const {
    return map == MapName::residual || map == MapName::block;
  }
  bool project() const { return map != MapName::core; }

  std::optional<Bound> attention_at(const Matrix& x,
                                    std::optional<Certificate> which) const {
    if (!local) return std::nullopt;
    return which ? local->at(x, *which) : over_ball(x, Norm::two);
  }

  std::optional<Bound> over_ball(const Matrix& x, Norm norm) const {
    const double R = longest_row(x);
    if (!(R > 0.0)) return std::nullopt;
    return best_bound(
        attention_bounds(layer, project(), options, x.rows(), {R, {}}), norm);
  }
};

LayerCertificates::LayerCertificates(const LayerWeights& layer, MapName map,
                                     const ModelMapOptions& options)
    : made_(std::make_unique<Made>()) {
  made_->map = map;
  made_->options = options;
  made_->layer = layer;
  const bool tied_by_norm =
      layer.query_key_norm && layer.query_key_norm->over_heads;
  if (options.heads.size() == 1 && !tied_by_norm) {
    // many heads of one layer do not keep the layer many times
    const Index h = options.heads[0];
    made_->layer.attention = alone(layer.attention, h);
    if (layer.relative_bias)
      made_->layer.relative_bias->table = layer.relative_bias->table.col(h);
    made_->options.heads.clear();
  }
  require(map != MapName::model, "certificate: a model is no map of one layer");
  require(options.sequences == 1, "certificate: {} sequences, it takes one",
          options.sequences);
  if (layer.position_heads || (made_->around() && layer.carry != 1.0)) return;
  const ChosenAttention chosen =
      chosen_attention(made_->layer, made_->project(), made_->options);
  made_->local.emplace(chosen.weights, chosen.options);
  if (made_->around())
    made_->attention = layer_map<double>(layer, MapName::attn, options);
  if (map == MapName::block) {
    made_->mlp = std::make_unique<Mlp<double>>(layer.mlp, options.threads);
    made_->norms = mlp_norms(layer.mlp);
  }
}
LayerCertificates::~LayerCertificates() = default;
LayerCertificates::LayerCertificates(LayerCertificates&&) noexcept = default;

bool LayerCertificates::offers(Certificate which) const {
  return made_->local && made_->local->offers(which);
}

std::optional<std::string> LayerCertificates::too_large(Certificate which,
                                                        Index n) const {
  if (!made_->local) return std::nullopt;
  return made_->local->too_large(which, n);
}

std::optional<Certificate> LayerCertificates::usual(Index n) const {
  if (!made_->local) return std::nullopt;
  const Index heads = made_->options.heads.empty()
                          ? made_->layer.attention.heads
                          : static_cast<Index>(made_->options.heads.size());
  constexpr Index most_numbers = Index{1} << 27;
  if (n > most_numbers / n / heads) return std::nullopt;
  return made_->local->usual(n);
}

std::optional<Bound> LayerCertificates::over_ball(const Matrix& x,
                                                  Norm norm) const {
  require(!made_->around(), "certificate: {} is more than attention",
          name_of(made_->map));
  return made_->over_ball(x, norm);
}

std::optional<Bound> LayerCertificates::at(
    const Matrix& x, std::optional<Certificate> which) const {
  if (!made_->around()) return made_->attention_at(x, which);
  std::optional<LayerBound> found = composed_at(x, which);
  if (!found) return std::nullopt;
  return std::move(found->bound);
}

std::optional<LayerBound> LayerCertificates::composed_at(
    const Matrix& x, std::optional<Certificate> which) const {
  const Made& m = *made_;
  require(m.around(), "certificate: {} is attention alone", name_of(m.map));
  if (!m.local) return std::nullopt;
  const LayerWeights& l = m.layer;
  const bool pre = l.pre_norm();
  const NormPlace place = l.attention_norm_place();
  const bool ahead = place == NormPlace::pre;
  const Matrix read = ahead ? normed(l.attention_norm, x) : x;  // by attention
  const std::optional<Bound> attention = m.attention_at(read, which);
  if (!attention || !std::isfinite(attention->value)) return std::nullopt;
  // what a branch gives to the residual sum, and its constant
  const auto output = [&](const NormWeights& norm, Matrix y, Magnitude& part) {
    if (norm.gain.size() > 0) {
      part = part * norm_layer_at(norm, y);
      y = normed(norm, y);
    }
    if (l.residual_scale != 1.0) {
      part = part * l.residual_scale;
      y *= l.residual_scale;
    }
    return y;
  };
  BlockParts parts{attention->value, 1.0, 1.0, 1.0};
  const Matrix mixed = x + output(l.attention_output_norm, (*m.attention)(read),
                                  parts.attention);
  const bool post = l.norm == NormPlace::post;
  if (place != NormPlace::none)
    parts.attention_norm = norm_layer_at(l.attention_norm, ahead ? x : mixed);
  if (m.map == MapName::block) {
    const Matrix middle = l.parallel ? x
                          : post     ? normed(l.attention_norm, mixed)
                                     : mixed;
    const Matrix fed = pre ? normed(l.mlp_norm, middle) : middle;
    parts.mlp = mlp_above(*m.norms, longest_row(fed));
    const Matrix made = output(l.mlp_output_norm, (*m.mlp)(fed), parts.mlp);
    if (pre || post)
      parts.mlp_norm =
          norm_layer_at(l.mlp_norm, pre ? middle : Matrix(middle + made));
  }
  // what rounding in the states may do to the norms made of them
  const Magnitude value = layer_bound(parts, m.map, l) * (1.0 + 1e-9);
  LayerBound found =
      named_layer_bound(m.map, *attention, parts, value, InputSet::one());
  found.value = magnitude_of(found.bound);
  return found;
}

}  // namespace lipscope
