#include "lipscope/theory/split_paths.h"

#include "lipscope/core/gemm.h"
#include "lipscope/core/parallel.h"

namespace lipscope {

const Statement split_paths_statement{
    .name = "split_paths",
    .norm = Norm::two,
    .mask = "any",
    .citation =
        "lipscope: value path by its leading direction, key and query paths "
        "by the norms of their parts between tokens, proof in "
        "theory/split_paths.h"};

Matrix head_means(const LayerParts& l, const LayerAt& at, const Matrix& x) {
  const Index n = x.rows(), width = x.cols() / l.heads;
  Matrix out(n, x.cols());
  parallel_for(l.heads, l.threads, [&](Index h) {
    gemm(as_is(at.p[h]), as_is(view(x, {0, h * width, n, width})),
         view(out, {0, h * width, n, width}));
  });
  return out;
}

double score_paths_above(const LayerParts& l, const SplitWeights& split,
                         const LayerAt& at) {
  Matrix norms = key_path_norms_above(l, split, at, head_means(l, at, at.v));
  norms.diagonal() += query_path_norms_above(l, split, at);
  return nonnegative_norm_above(norms);
}

Magnitude split_paths(const LayerParts& l, const SplitWeights& split,
                      const LayerAt& at) {
  return Magnitude(value_path_above(l, split, at)) +
         score_paths_above(l, split, at);
}

}  // namespace lipscope
