#include "lipscope/train/matrix_blocks.h"

#include <algorithm>

#include "lipscope/core/parallel.h"

namespace lipscope {
namespace {

// additions of a product with the smaller Gram matrix, from which on threads
// gain more within one matrix than by sharing matrices out
constexpr Index large = Index{1} << 28;

Index work(const MatrixBlock& b) {
  const Index rows = b.tensor->slot.rows,
              cols = b.tensor->slot.cols / b.tensor->blocks;
  return rows * cols * std::min(rows, cols);
}

}  // namespace

std::vector<MatrixBlock> matrix_blocks(const Layout& layout,
                                       const TensorChoice& which) {
  std::vector<MatrixBlock> all;
  for (const Layout::Tensor& t : layout.tensors())
    if (t.matrix && (!which || which(t)))
      for (Index b = 0; b < t.blocks; ++b)
        all.push_back({.tensor = &t, .number = b});
  return all;
}

void for_matrices(
    const std::vector<MatrixBlock>& blocks, int threads,
    const std::function<void(const MatrixBlock&, int threads)>& task) {
  std::vector<MatrixBlock> small;
  for (const MatrixBlock& b : blocks)
    if (work(b) >= large)
      task(b, threads);
    else
      small.push_back(b);
  // the longest first: the last ones to end are then short
  std::stable_sort(
      small.begin(), small.end(),
      [](const auto& a, const auto& b) { return work(a) > work(b); });
  parallel_for(static_cast<Index>(small.size()), threads,
               [&](Index i) { task(small[static_cast<std::size_t>(i)], 1); });
}

MatrixOf<float> smaller_gram(const MatrixOf<float>& x, const Products& how) {
  const bool wide = x.rows() <= x.cols();
  const Index n = std::min(x.rows(), x.cols());
  MatrixOf<float> gram(n, n);
  product_into<float>(wide ? as_is(x) : transposed(x),
                      wide ? transposed(x) : as_is(x), view(gram), how.threads,
                      how.precision);
  return gram;
}

MatrixOf<float> times_gram(const MatrixOf<float>& x, const MatrixOf<float>& b,
                           const Products& how) {
  const bool wide = x.rows() <= x.cols();
  MatrixOf<float> out(x.rows(), x.cols());
  product_into<float>(wide ? as_is(b) : as_is(x), wide ? as_is(x) : as_is(b),
                      view(out), how.threads, how.precision);
  return out;
}

MatrixOf<float> square_product(const MatrixOf<float>& a,
                               const MatrixOf<float>& b, const Products& how) {
  MatrixOf<float> out(a.rows(), b.cols());
  product_into<float>(as_is(a), as_is(b), view(out), how.threads,
                      how.precision);
  return out;
}

}  // namespace lipscope
