#include "lipscope/theory/head_grams.h"

#include <utility>

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

SharedDirection direction_through(const Gram& gram, Matrix u) {
  SharedDirection out{std::move(u), {}, {}};
  out.through = out.u * gram.g;
  out.size2 = out.u.cwiseProduct(out.through).rowwise().sum();
  return out;
}

void remove_direction(const SharedDirection& d, Index first, const Matrix& x,
                      Index heads, Index r, Matrix& grams) {
  const Index w = x.cols() / heads, size = heads * r;
  Vector t(size), m(size);
  for (Index i = 0; i < grams.rows(); ++i) {
    for (Index h = 0; h < heads; ++h) {
      const auto rows = x.block(i * r, h * w, r, w);
      t.segment(h * r, r) =
          rows * d.u.row(first + i).segment(h * w, w).transpose();
      m.segment(h * r, r) =
          rows * d.through.row(first + i).segment(h * w, w).transpose();
    }
    Eigen::Map<Matrix> one(grams.row(i).data(), size, size);
    one += d.size2[first + i] * t * t.transpose() - m * t.transpose() -
           t * m.transpose();
  }
}

double removed_gram_error(const Gram& gram, double size2) {
  return 8 * head_gram_error(gram, gram.g.rows(), size2);
}

}  // namespace lipscope
