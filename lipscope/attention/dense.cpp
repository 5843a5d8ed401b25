#include "lipscope/attention/dense.h"

#include <numeric>

#include "lipscope/attention/dense_head.h"
#include "lipscope/attention/kinds.h"
#include "lipscope/core/errors.h"

namespace lipscope {
namespace {

DenseHead cut(const AttentionWeights& w, const AttentionOptions& o,
              Index slot) {
  const Index h = o.heads[slot], k = w.query_width(), width = w.value_width();
  const bool tied = kind_of(o.kind).tied;
  // queries of head h meet the keys and values of group g
  const Index g = w.key_heads == 0 ? h : h * w.key_heads / w.heads;
  const auto bias = [&](const Vector& b, Index head, Index size) {
    return b.size() == 0 ? DenseRow(DenseRow::Zero(size))
                         : DenseRow(b.segment(head * size, size).transpose());
  };
  DenseHead head;
  head.number = h;
  head.wq = w.query.middleCols(h * k, k);
  head.wk = tied ? head.wq : Matrix(w.key.middleCols(g * k, k));
  head.bq = bias(w.query_bias, h, k);
  head.bk = tied ? head.bq : bias(w.key_bias, g, k);
  head.wv = w.value.middleCols(g * width, width);
  head.bv = bias(w.value_bias, g, width);
  if (o.project && w.output.size() > 0) {
    head.out = w.output.middleRows(h * width, width);
  } else {
    const Index slots = static_cast<Index>(o.heads.size());
    head.out = Matrix::Zero(width, slots * width);
    head.out.middleCols(slot * width, width).setIdentity();
  }
  return head;
}

}  // namespace

Matrix dense_jacobian(const AttentionWeights& weights,
                      const AttentionOptions& options, const Matrix& x) {
  const AttentionKind& kind = kind_of(options.kind);
  require_sound(weights, options.kind);
  require(options.sequences == 1, "dense_jacobian: {} sequences, it takes one",
          options.sequences);
  require(x.cols() == weights.features(),
          "dense_jacobian: tokens have {} features, the layer reads {}",
          x.cols(), weights.features());
  require(!options.query_key_norm || !options.query_key_norm->over_heads,
          "dense_jacobian: q/k-norm over heads");
  require(!options.rope || kind.no_rope.empty(), "dense_jacobian: {}",
          kind.no_rope);
  AttentionOptions chosen = options;
  if (chosen.heads.empty()) {
    chosen.heads.resize(weights.heads);
    std::iota(chosen.heads.begin(), chosen.heads.end(), Index{0});
  }

  const Index slots = static_cast<Index>(chosen.heads.size());
  const Index e = chosen.project && weights.output.size() > 0
                      ? weights.output.cols()
                      : slots * weights.value_width();
  Matrix jacobian = Matrix::Zero(x.rows() * e, x.size());
  for (Index slot = 0; slot < slots; ++slot)
    kind.dense(cut(weights, chosen, slot), chosen, x, jacobian);
  return jacobian;
}

}  // namespace lipscope
