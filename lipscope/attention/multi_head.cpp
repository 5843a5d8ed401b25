#include "lipscope/attention/multi_head.h"

#include <cmath>
#include <utility>

#include "lipscope/attention/head_weights.h"
#include "lipscope/attention/kinds.h"
#include "lipscope/attention/multi_head_jacobian.h"
#include "lipscope/core/errors.h"

namespace lipscope {
namespace {

// the `width` columns of each chosen head, side by side, in columns of `to`
// from `first` on
template <class Real>
void take_columns(const Matrix& from, const std::vector<Index>& heads,
                  Index width, MatrixOf<Real>& to, Index first) {
  for (std::size_t s = 0; s < heads.size(); ++s)
    to.middleCols(first + s * width, width) =
        from.middleCols(heads[s] * width, width).template cast<Real>();
}

// the same of a bias, zero where there is none
template <class Real>
void take_entries(const Vector& from, const std::vector<Index>& heads,
                  Index width, VectorOf<Real>& to, Index first) {
  for (std::size_t s = 0; s < heads.size(); ++s) {
    auto entries = to.segment(first + s * width, width);
    if (from.size() == 0)
      entries.setZero();
    else
      entries = from.segment(heads[s] * width, width).template cast<Real>();
  }
}

}  // namespace

template <class Real>
MultiHeadAttention<Real>::MultiHeadAttention(const AttentionWeights& weights,
                                             AttentionOptions options)
    : options_(std::move(options)),
      query_width_(weights.query_width()),
      value_width_(weights.value_width()) {
  require_sound(weights, options_.kind);
  require(options_.sequences >= 1, "attention: {} sequences",
          options_.sequences);
  const AttentionKind& kind = kind_of(options_.kind);
  require(
      kind.shares() || (options_.log_mass.size() == 0 && options_.seen.empty()),
      "attention: {} weights are not shares; they take no masses", kind.name);
  options_.heads = chosen_heads(weights, options_.heads);
  heads_ = static_cast<Index>(options_.heads.size());
  std::vector<Index> key_heads;  // with repeats where a group shares one
  for (const Index h : options_.heads) key_heads.push_back(weights.key_head(h));
  if (options_.rope)
    require_rotatable(*options_.rope, query_width_, options_.kind);
  if (options_.query_key_norm)
    require_normable(*options_.query_key_norm, weights, options_.kind, heads_);
  if (options_.relative_bias)
    require_addable(*options_.relative_bias, weights, options_.kind,
                    options_.mask);

  const Index k = query_width_, w = value_width_, d = weights.features();
  const Index keys = kind.tied ? 0 : heads_ * k;
  const Index values = heads_ * k + keys;  // where the columns of v begin
  projection_.resize(d, values + heads_ * w);
  projection_bias_.resize(projection_.cols());

  take_columns(weights.query, options_.heads, k, projection_, 0);
  take_entries(weights.query_bias, options_.heads, k, projection_bias_, 0);
  const Real root = std::sqrt(static_cast<Real>(k));
  if (const auto& norm = options_.query_key_norm) {
    const bool each = !norm->over_heads;
    const std::vector<Index> alike(options_.heads.size(), 0);
    query_gain_.resize(heads_ * k);
    key_gain_.resize(heads_ * k);
    take_entries(norm->query_gain, each ? alike : options_.heads, k,
                 query_gain_, 0);
    take_entries(norm->key_gain, each ? alike : key_heads, k, key_gain_, 0);
    if (kind.query_over_root) query_gain_ /= root;
  } else if (kind.query_over_root) {
    projection_.leftCols(heads_ * k) /= root;
    projection_bias_.head(heads_ * k) /= root;
  }
  if (!kind.tied) {
    take_columns(weights.key, key_heads, k, projection_, heads_ * k);
    take_entries(weights.key_bias, key_heads, k, projection_bias_, heads_ * k);
  }
  if (kind.value_weights)
    take_columns(kind.value_weights(weights), options_.heads, w, projection_,
                 values);
  else
    take_columns(weights.value, key_heads, w, projection_, values);
  take_entries(weights.value_bias, key_heads, w, projection_bias_, values);

  if (options_.project && weights.output.size() > 0) {
    output_.resize(heads_ * w, weights.output.cols());
    for (Index s = 0; s < heads_; ++s)
      output_.middleRows(s * w, w) =
          weights.output.middleRows(options_.heads[s] * w, w)
              .template cast<Real>();
    output_bias_ = weights.output_bias.cast<Real>();
    mix_ = RightFactor<Real>(as_is(output_));
    unmix_ = RightFactor<Real>(transposed(output_));
  }
  project_ = RightFactor<Real>(as_is(projection_));
  unproject_ = RightFactor<Real>(transposed(projection_));
}

template <class Real>
MatrixOf<Real> MultiHeadAttention<Real>::operator()(
    const MatrixOf<Real>& x) const {
  return Jacobian(*this, x).value();
}

template <class Real>
std::unique_ptr<LinearOperator<Real>> MultiHeadAttention<Real>::linearize(
    const MatrixOf<Real>& x) const {
  auto jacobian = std::make_unique<Jacobian>(*this, x);
  jacobian->require_settled();
  return jacobian;
}

template <class Real>
MatrixOf<Real> MultiHeadAttention<Real>::tangent_gradient(
    const MatrixOf<Real>& x, const VectorOf<Real>& v,
    const VectorOf<Real>& u) const {
  return Jacobian(*this, x).tangent_gradient(v, u);
}

template <class Real>
CommonShift<Real> MultiHeadAttention<Real>::common_shift(
    const LinearOperator<Real>& J) const {
  const auto* jacobian = dynamic_cast<const Jacobian*>(&J);
  require(jacobian && jacobian->is_of(*this),
          "common_shift: the operator is no Jacobian of this attention");
  return jacobian->common_shift();
}

template class MultiHeadAttention<float>;
template class MultiHeadAttention<double>;

}  // namespace lipscope
