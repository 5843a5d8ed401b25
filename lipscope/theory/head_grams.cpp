#include "lipscope/theory/head_grams.h"

#include "lipscope/core/errors.h"
#include "lipscope/core/gemm.h"
#include "lipscope/core/rounding.h"
#include "lipscope/theory/magnitude.h"

namespace lipscope {

Matrix head_grams(const Gram& gram, const Matrix& x, Index heads, Index r) {
  require(
      x.cols() == gram.g.rows() && x.rows() % r == 0 && x.cols() % heads == 0,
      "head_grams: [{}x{}] for {} heads of {} rows", x.rows(), x.cols(), heads,
      r);
  const Index count = x.rows() / r, w = x.cols() / heads, size = heads * r;
  Matrix out(count, size * size);
  Matrix half(x.rows(), x.cols());
  for (Index g = 0; g < heads; ++g) {
    // heads up to g: the others follow by symmetry
    gemm(as_is(view(x, {0, g * w, x.rows(), w})),
         as_is(view(gram.g, {g * w, 0, w, (g + 1) * w})),
         view(half, {0, 0, x.rows(), (g + 1) * w}));
    for (Index i = 0; i < count; ++i) {
      View<double> one(out.row(i).data(), size, size,
                       Eigen::OuterStride<>(size));
      for (Index h = 0; h <= g; ++h) {
        auto part = one.block(g * r, h * r, r, r);
        part.noalias() =
            half.block(i * r, h * w, r, w)
                .lazyProduct(x.block(i * r, h * w, r, w).transpose());
        if (h < g) one.block(h * r, g * r, r, r) = part.transpose();
      }
    }
  }
  return out;
}

double head_gram_error(const Gram& gram, Index width, double size2) {
  return well_above(
      size2 * (gram.error +
               4 * unit_roundoff * static_cast<double>(width + 4) * gram.size));
}

}  // namespace lipscope
