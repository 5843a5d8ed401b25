#include "lipscope/theory/layer_at.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lipscope/attention/head_weights.h"
#include "lipscope/attention/kinds.h"
#include "lipscope/attention/softmax.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/gemm.h"
#include "lipscope/core/parallel.h"
#include "lipscope/core/rounding.h"

namespace lipscope {
namespace {

// σ(t) and σ'(t) of the visible scores s + shift; 1 − σ would cancel
void weigh_by_sigmoid(Matrix& s, Matrix& slope, const Mask& mask,
                      double shift) {
  slope = Matrix::Zero(s.rows(), s.cols());
  for (Index i = 0; i < s.rows(); ++i) {
    const TokenRange seen = visible(mask, i, s.cols());
    for (Index j = 0; j < s.cols(); ++j) {
      if (j < seen.begin || j >= seen.end) {
        s(i, j) = 0.0;
        continue;
      }
      const double t = s(i, j) + shift, small = std::exp(-std::abs(t));
      s(i, j) = (t >= 0.0 ? 1.0 : small) / (1.0 + small);
      slope(i, j) = small / ((1.0 + small) * (1.0 + small));
    }
  }
}

// turned by position, then made into features; `raw` is rotated in place
HeadFeatures<double> features_of(const LayerParts& l, const LayerAt& at,
                                 HeadFeatures<double>& raw) {
  if (at.rope) at.rope->rotate(raw);
  const KindFeatures<double>& features = kind_of(l.options.kind).f64;
  return features.make ? features.make(raw, l.options) : raw;
}

void norm_queries_and_keys(const LayerParts& l, LayerAt& at) {
  const std::optional<QueryKeyNorm>& norm = l.options.query_key_norm;
  if (!norm) return;
  const BlockNorm<double>::Place place{
      .first = 0,
      .width = norm->over_heads ? l.heads * l.k : l.k,
      .blocks = norm->over_heads ? 1 : l.heads};
  at.query_norm.emplace(at.q, place, l.query_gain, norm->epsilon);
  at.key_norm.emplace(at.k, place, l.key_gain, norm->epsilon);
}

// how far normed queries or keys may be from exact ones: s max|γ| times what
// their projections err by, the largest of all tokens and heads
double normed_error(const BlockNorm<double>& norm, const Matrix& x,
                    const Matrix& weights, const Vector& bias) {
  const double sum = static_cast<double>(x.cols() + 1) * unit_roundoff;
  const double most = norm.gain().cwiseAbs().maxCoeff();
  const Index width = norm.place().width;
  double error = 0.0;
  for (Index b = 0; b < norm.place().blocks; ++b) {
    const double size = weights.middleCols(b * width, width).norm();
    const double shift = bias.segment(b * width, width).norm();
    for (Index i = 0; i < x.rows(); ++i)
      error = std::max(error, norm.shrink()(i, b) * most * sum *
                                  (x.row(i).norm() * size + shift));
  }
  return error;
}

// the projections at.q, at.k and at.v to features
void make_features(const LayerParts& l, LayerAt& at) {
  const Index n = at.x.rows();
  norm_queries_and_keys(l, at);
  const bool bent = kind_of(l.options.kind).f64.make != nullptr;
  if (l.options.rope) at.rope.emplace(n, l.k, *l.options.rope);
  Matrix q, k, v;
  for (Index h = 0; h < l.heads; ++h) {
    HeadFeatures<double> raw{.q = at.q.middleCols(h * l.k, l.k),
                             .k = at.k.middleCols(h * l.k, l.k),
                             .v = at.v.middleCols(h * l.w, l.w)};
    HeadFeatures<double> made = features_of(l, at, raw);
    const Index width = made.q.cols();
    q.conservativeResize(n, l.heads * width);
    k.conservativeResize(n, l.heads * width);
    v.conservativeResize(n, l.heads * l.w);
    q.middleCols(h * width, width) = made.q;
    k.middleCols(h * width, width) = made.k;
    v.middleCols(h * l.w, l.w) = made.v;
    if (bent) at.bent.push_back({std::move(raw), std::move(made)});
  }
  at.q = std::move(q);
  at.k = std::move(k);
  at.v = std::move(v);
}

}  // namespace

LayerParts layer_parts(const AttentionWeights& weights,
                       const AttentionOptions& options) {
  require(options.log_mass.size() == 0 && options.seen.empty(),
          "certificate: none is proved for tokens with masses");
  require(options.sequences == 1, "certificate: {} sequences, it takes one",
          options.sequences);
  require_sound(weights, options.kind);
  const AttentionKind& kind = kind_of(options.kind);
  if (options.rope)
    require_rotatable(*options.rope, weights.query_width(), options.kind);
  const std::vector<Index> chosen = chosen_heads(weights, options.heads);
  const std::optional<QueryKeyNorm>& norm = options.query_key_norm;
  if (norm)
    require_normable(*norm, weights, options.kind,
                     static_cast<Index>(chosen.size()));
  if (options.relative_bias)
    require_addable(*options.relative_bias, weights, options.kind,
                    options.mask);

  LayerParts l;
  l.heads = static_cast<Index>(chosen.size());
  l.k = weights.query_width();
  l.w = weights.value_width();
  l.projected = options.project && weights.output.size() > 0;
  l.mask = options.mask;
  l.threads = options.threads;
  l.options = options;
  l.plain = kind.shares() && !kind.f64.make && !options.rope && !norm;
  const Index d = weights.features();
  l.query.resize(d, l.heads * l.k);
  l.key.resize(d, l.heads * l.k);
  l.value.resize(d, l.heads * l.w);
  l.query_bias.resize(l.heads * l.k);
  l.key_bias.resize(l.heads * l.k);
  l.value_size.resize(l.heads);
  if (!kind.adds_value_bias_last()) l.value_bias.resize(l.heads * l.w);
  if (l.projected) l.output.resize(l.heads * l.w, weights.output.cols());
  const double over_root =
      kind.query_over_root ? std::sqrt(static_cast<double>(l.k)) : 1.0;
  const double root = norm ? 1.0 : over_root;
  if (norm) {
    l.query_gain.resize(l.heads * l.k);
    l.key_gain.resize(l.heads * l.k);
  }
  if (options.relative_bias) {
    l.relative = options.relative_bias;
    l.relative->table = options.relative_bias->table(Eigen::all, chosen);
  }
  const Matrix values =
      kind.value_weights ? kind.value_weights(weights) : Matrix();
  for (Index s = 0; s < l.heads; ++s) {
    const HeadWeights h = head(weights, chosen[s]);
    l.query.middleCols(s * l.k, l.k) = h.query / root;
    l.key.middleCols(s * l.k, l.k) = h.key;
    l.value_size[s] = h.value.norm();
    if (kind.value_weights) {
      l.value.middleCols(s * l.w, l.w) =
          values.middleCols(chosen[s] * l.w, l.w);
      l.value_size[s] *=
          h.query.squaredNorm() / std::sqrt(static_cast<double>(l.k));
    } else {
      l.value.middleCols(s * l.w, l.w) = h.value;
    }
    l.query_bias.segment(s * l.k, l.k) = h.query_bias / root;
    l.key_bias.segment(s * l.k, l.k) = kind.tied ? h.query_bias : h.key_bias;
    if (l.value_bias.size() > 0)
      l.value_bias.segment(s * l.w, l.w) = h.value_bias;
    if (l.projected) l.output.middleRows(s * l.w, l.w) = h.output;
    l.biased = l.biased || (h.key * h.query_bias).squaredNorm() > 0.0;
    if (norm) {
      const Index q = norm->over_heads ? chosen[s] * l.k : 0;
      const Index k = norm->over_heads ? weights.key_head(chosen[s]) * l.k : 0;
      l.query_gain.segment(s * l.k, l.k) =
          norm->query_gain.segment(q, l.k) / over_root;
      l.key_gain.segment(s * l.k, l.k) = norm->key_gain.segment(k, l.k);
    }
  }
  return l;
}

LayerAt layer_at(const LayerParts& l, const Matrix& x) {
  require(x.cols() == l.query.rows(),
          "certificate: tokens have {} features, the layer reads {}", x.cols(),
          l.query.rows());
  require(x.rows() > 0, "certificate: the sequence is empty");
  require(x.allFinite(), "certificate: the tokens are not all finite");
  require_sound(l.mask, x.rows());
  LayerAt at;
  at.x = x;
  at.q = product(as_is(x), as_is(l.query), l.threads);
  at.k = product(as_is(x), as_is(l.key), l.threads);
  at.v = product(as_is(x), as_is(l.value), l.threads);
  at.q.rowwise() += l.query_bias.transpose();
  at.k.rowwise() += l.key_bias.transpose();
  if (l.value_bias.size() > 0) at.v.rowwise() += l.value_bias.transpose();
  if (!l.plain) make_features(l, at);
  const Index width = at.q.cols() / l.heads;
  const auto shift = kind_of(l.options.kind).sigmoid_shift;
  double largest = 0.0, normed = 0.0;
  if (at.query_norm) {
    const double q = normed_error(*at.query_norm, x, l.query, l.query_bias);
    const double k = normed_error(*at.key_norm, x, l.key, l.key_bias);
    normed = q * at.k.rowwise().norm().maxCoeff() +
             k * at.q.rowwise().norm().maxCoeff();
  }
  for (Index h = 0; h < l.heads; ++h) {
    const auto q = at.q.middleCols(h * width, width);
    const auto k = at.k.middleCols(h * width, width);
    Matrix s = q * k.transpose();
    if (l.relative) {
      const Vector added = relative_scores(*l.relative, h, x.rows());
      for (Index i = 0; i < s.rows(); ++i)
        s.row(i) += added.segment(s.rows() - 1 - i, s.cols()).transpose();
    }
    largest = std::max(largest, s.cwiseAbs().maxCoeff());
    if (!at.bent.empty() || at.query_norm)
      largest = std::max(largest, q.rowwise().norm().maxCoeff() *
                                      k.rowwise().norm().maxCoeff());
    if (shift) {
      weigh_by_sigmoid(s, at.unshared_slope.emplace_back(), l.mask,
                       shift(x.rows()));
      at.p.push_back(std::move(s));
    } else {
      at.p.push_back(softmax_rows(std::move(s), l.mask));
    }
  }
  at.allowance =
      1e-9 + 64 * unit_roundoff * (static_cast<double>(x.cols()) + largest) +
      64 * normed;
  return at;
}

TokenRange seen_by_any(const Mask& mask, Index begin, Index rows, Index n) {
  // what is seen first and last moves forwards with the token, or stays
  return {visible(mask, begin, n).begin,
          visible(mask, begin + rows - 1, n).end};
}

Matrix head_means(const LayerParts& l, const LayerAt& at, const Matrix& x) {
  const Index n = x.rows(), width = x.cols() / l.heads;
  Matrix out(n, x.cols());
  parallel_for(l.heads, l.threads, [&](Index h) {
    gemm(as_is(at.p[h]), as_is(view(x, {0, h * width, n, width})),
         view(out, {0, h * width, n, width}));
  });
  return out;
}

Matrix centres(const LayerParts& l, const LayerAt& at) {
  return at.unshared_slope.empty()
             ? head_means(l, at, at.v)
             : Matrix(Matrix::Zero(at.v.rows(), at.v.cols()));
}

}  // namespace lipscope
