#include "lipscope/theory/block_norms.h"

#include <algorithm>
#include <cmath>

#include "lipscope/core/gemm.h"
#include "lipscope/core/parallel.h"
#include "lipscope/theory/magnitude.h"
#include "lipscope/theory/norms.h"

namespace lipscope {
namespace {

using Row = Eigen::RowVectorXd;

// what row i of the blocks is made of, head by head
struct RowOfBlocks {
  Matrix mean;  // [H×w], v̄_i^h
  Matrix pull;  // [H×d], w_i^h
};

RowOfBlocks row_of_blocks(const LayerParts& l, const LayerAt& at, Index i) {
  RowOfBlocks out{Matrix(l.heads, l.w), Matrix(l.heads, l.key.rows())};
  for (Index h = 0; h < l.heads; ++h) {
    out.mean.row(h) = at.p[h].row(i) * at.v.middleCols(h * l.w, l.w);
    out.pull.row(h) = at.q.row(i).segment(h * l.k, l.k) *
                      l.key.middleCols(h * l.k, l.k).transpose();
  }
  return out;
}

// W_Q^h C_i^h [d×w]
Matrix query_part(const LayerParts& l, const LayerAt& at, Index i, Index h,
                  const Row& mean) {
  Matrix centred = at.v.middleCols(h * l.w, l.w).rowwise() - mean;
  centred = at.p[h].row(i).transpose().asDiagonal() * centred;
  const Matrix c = at.k.middleCols(h * l.k, l.k).transpose() * centred;
  return l.query.middleCols(h * l.k, l.k) * c;
}

// one head: rows of N
Matrix norms_of_one_head(const LayerParts& l, const LayerAt& at) {
  const Index n = at.x.rows();
  // values and their weights as F leaves them
  const Matrix f = l.projected ? factor_above(gram_of_rows(l.output))
                               : Matrix(Matrix::Identity(l.w, l.w));
  const Matrix value = l.value * f;
  const Matrix vf = at.v * f;
  const Gram gram = gram_of_columns(value);

  Matrix norms = Matrix::Zero(n, n);
  parallel_for(n, l.threads, [&](Index i) {
    const RowOfBlocks row = row_of_blocks(l, at, i);
    const Row pull = row.pull.row(0);
    const Row mean = row.mean.row(0) * f;
    const Row turned = pull * value;
    const double pull2 = pull.squaredNorm();
    for (Index j = 0; j < visible(l.mask, i, n); ++j) {
      const Row z = vf.row(j) - mean;
      if (i == j) {
        Matrix block = at.p[0](i, i) * (value + pull.transpose() * z) +
                       query_part(l, at, i, 0, row.mean.row(0)) * f;
        norms(i, i) = weight_norm_above(block);
        continue;
      }
      // (V + wᵀz)ᵀ(V + wᵀz), up to P_ij²
      Matrix g = gram.g;
      g.noalias() += turned.transpose() * z;
      g.noalias() += z.transpose() * turned;
      g.noalias() += pull2 * z.transpose() * z;
      const double size =
          std::sqrt(gram.g.trace()) + std::sqrt(pull2) * z.norm();
      const double error = gram.error + 1e-12 * size * size;
      norms(i, j) = at.p[0](i, j) * std::sqrt(eigenvalue_above(g, error));
    }
  });
  return norms;
}

Matrix norms_of_layer(const LayerParts& l, const LayerAt& at) {
  const Index n = at.x.rows(), H = l.heads, w = l.w, d = l.value.rows();
  const Index e = l.projected ? l.output.cols() : H * w;
  const auto through_output = [&](const Matrix& stacked) {
    return l.projected ? product(as_is(stacked), as_is(l.output), 1) : stacked;
  };
  // V_h, each flattened to a row: a block's value part is then a product
  Matrix values(H, d * e);
  for (Index h = 0; h < H; ++h) {
    Matrix alone = Matrix::Zero(d, H * w);
    alone.middleCols(h * w, w) = l.value.middleCols(h * w, w);
    values.row(h) = flatten(through_output(alone)).transpose();
  }

  Matrix norms = Matrix::Zero(n, n);
  parallel_for(n, l.threads, [&](Index i) {
    const RowOfBlocks row = row_of_blocks(l, at, i);
    for (Index j = 0; j < visible(l.mask, i, n); ++j) {
      Matrix shares(1, H), steps = Matrix::Zero(H, H * w);
      for (Index h = 0; h < H; ++h) {
        shares(0, h) = at.p[h](i, j);
        steps.block(h, h * w, 1, w) =
            at.p[h](i, j) * (at.v.block(j, h * w, 1, w) - row.mean.row(h));
      }
      Matrix block = Matrix((shares * values).reshaped<Eigen::RowMajor>(d, e));
      block.noalias() += row.pull.transpose() * through_output(steps);
      if (i == j) {
        Matrix own(d, H * w);
        for (Index h = 0; h < H; ++h)
          own.middleCols(h * w, w) = query_part(l, at, i, h, row.mean.row(h));
        block += through_output(own);
      }
      norms(i, j) = weight_norm_above(block);
    }
  });
  return norms;
}

}  // namespace

double block_norms_above(const LayerParts& l, const LayerAt& at) {
  return nonnegative_norm_above(l.heads == 1 ? norms_of_one_head(l, at)
                                             : norms_of_layer(l, at));
}

}  // namespace lipscope
