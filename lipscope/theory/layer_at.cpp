#include "lipscope/theory/layer_at.h"

#include <cmath>
#include <utility>

#include "lipscope/attention/softmax.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/gemm.h"
#include "lipscope/core/rounding.h"
#include "lipscope/theory/bounds.h"
#include "lipscope/theory/head_norms.h"

namespace lipscope {

LayerParts layer_parts(const AttentionWeights& weights,
                       const AttentionOptions& options) {
  require(kind_bounds(options.kind).at_input,
          "certificate: {} attention has no local certificates",
          name_of(options.kind));
  require(!options.rope_theta,
          "certificate: none is proved for rotary positions");
  require(options.log_mass.size() == 0 && options.seen.empty(),
          "certificate: none is proved for tokens with masses");
  require(options.sequences == 1, "certificate: {} sequences, it takes one",
          options.sequences);
  require_sound(weights, options.kind);
  const std::vector<Index> chosen = chosen_heads(weights, options.heads);

  LayerParts l;
  l.heads = static_cast<Index>(chosen.size());
  l.k = weights.query_width();
  l.w = weights.value_width();
  l.projected = options.project && weights.output.size() > 0;
  l.mask = options.mask;
  l.threads = options.threads;
  const Index d = weights.features();
  l.query.resize(d, l.heads * l.k);
  l.key.resize(d, l.heads * l.k);
  l.value.resize(d, l.heads * l.w);
  l.query_bias.resize(l.heads * l.k);
  l.key_bias.resize(l.heads * l.k);
  if (l.projected) l.output.resize(l.heads * l.w, weights.output.cols());
  const double root = std::sqrt(static_cast<double>(l.k));
  for (Index s = 0; s < l.heads; ++s) {
    const HeadWeights h = head(weights, chosen[s]);
    l.query.middleCols(s * l.k, l.k) = h.query / root;
    l.key.middleCols(s * l.k, l.k) = h.key;
    l.value.middleCols(s * l.w, l.w) = h.value;
    l.query_bias.segment(s * l.k, l.k) = h.query_bias / root;
    l.key_bias.segment(s * l.k, l.k) = h.key_bias;
    if (l.projected) l.output.middleRows(s * l.w, l.w) = h.output;
    l.biased = l.biased || (h.key * h.query_bias).squaredNorm() > 0.0;
  }
  return l;
}

LayerAt layer_at(const LayerParts& l, const Matrix& x) {
  require(x.cols() == l.query.rows(),
          "certificate: tokens have {} features, the layer reads {}", x.cols(),
          l.query.rows());
  require(x.rows() > 0, "certificate: the sequence is empty");
  require(x.allFinite(), "certificate: the tokens are not all finite");
  LayerAt at;
  at.x = x;
  at.q = product(as_is(x), as_is(l.query), l.threads);
  at.k = product(as_is(x), as_is(l.key), l.threads);
  at.v = product(as_is(x), as_is(l.value), l.threads);
  at.q.rowwise() += l.query_bias.transpose();
  at.k.rowwise() += l.key_bias.transpose();
  double largest = 0.0;
  for (Index h = 0; h < l.heads; ++h) {
    Matrix s = at.q.middleCols(h * l.k, l.k) *
               at.k.middleCols(h * l.k, l.k).transpose();
    largest = std::max(largest, s.cwiseAbs().maxCoeff());
    at.p.push_back(softmax_rows(std::move(s), l.mask));
  }
  at.allowance =
      1e-9 + 64 * unit_roundoff * (static_cast<double>(x.cols()) + largest);
  return at;
}

}  // namespace lipscope
