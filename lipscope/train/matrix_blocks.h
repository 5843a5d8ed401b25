#pragma once

#include <functional>
#include <vector>

#include "lipscope/core/gemm.h"
#include "lipscope/train/layout.h"

/// What Muon and the rules for singular values share: they treat each matrix of
/// a model by itself, and by polynomials of its smaller Gram matrix.
namespace lipscope {

/// Matrix `number` of those that stand side by side in a tensor.
struct MatrixBlock {
  const Layout::Tensor* tensor = nullptr;
  Index number = 0;
};

/// The matrices of all tensors that are matrices and are chosen (all are where
/// nothing is said). The layout must outlive them.
std::vector<MatrixBlock> matrix_blocks(const Layout& layout,
                                       const TensorChoice& which = {});

/// Calls task(block, threads) for each: small ones side by side, each on one
/// thread; large ones one after another, on all threads. Products that do not
/// depend on the number of threads then give the same bits on any.
void for_matrices(
    const std::vector<MatrixBlock>& blocks, int threads,
    const std::function<void(const MatrixBlock&, int threads)>& task);

/// How products are made.
struct Products {
  int threads = 0;  ///< 0: all cores
  Precision precision = Precision::full;
};

/// XXᵀ where X has no more rows than columns, XᵀX otherwise.
MatrixOf<float> smaller_gram(const MatrixOf<float>& x, const Products& how);

/// B X or X B, whichever side B of the size of smaller_gram(x) fits. If X =
/// Σ σ u vᵀ and B = p(smaller Gram matrix), this is Σ p(σ²)σ u vᵀ.
MatrixOf<float> times_gram(const MatrixOf<float>& x, const MatrixOf<float>& b,
                           const Products& how);

/// A B for square matrices of one size.
MatrixOf<float> square_product(const MatrixOf<float>& a,
                               const MatrixOf<float>& b, const Products& how);

}  // namespace lipscope
