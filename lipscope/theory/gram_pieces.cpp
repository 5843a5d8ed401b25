#include "lipscope/theory/gram_pieces.h"

#include <cmath>

#include "lipscope/core/parallel.h"

namespace lipscope {
namespace {

// a power of two not below the size of steps; 1 for next to none
double step_unit(double size) {
  constexpr double least = 1e-200;
  return size > least ? std::exp2(std::ceil(std::log2(size))) : 1.0;
}

}  // namespace

double roundings_on_the_way(Index n, Index heads) {
  return static_cast<double>(2 * n + 7 * heads + 140);
}

TokenPieces::TokenPieces(const GramParts& parts, const LayerParts& l,
                         const LayerAt& at, Index i, double scale) {
  const Index n = at.x.rows(), H = l.heads, w = l.w;
  const GramParts::Pulls& pulls = parts.pulls(i);
  Matrix z = parts.sloped_steps(i, {0, n});
  weights.resize(H, n);
  pull.resize(H, pulls.pull[0].cols());
  value.resize(H, H * w);
  query.resize(H, H * l.k);
  unit.resize(H);
  steps_size.resize(H);
  weights_size.resize(H);
  for (Index h = 0; h < H; ++h) {
    auto of_head = z.middleCols(h * w, w);
    unit[h] = step_unit(of_head.norm());
    of_head /= unit[h];
    steps_size[h] = of_head.norm();
    const double pulled = unit[h] / scale;
    pull.row(h) = pulled * pulls.pull[h].row(0);
    value.row(h) = pulled * pulls.value[h].row(0);
    query.row(h) = pulled * pulls.query[h].row(0);
    weights.row(h) = at.p[h].row(i).cast<float>();
    weights_size[h] = at.p[h].row(i).norm();
  }
  steps = z.cast<float>();
}

PiecesBand::PiecesBand(const GramParts& parts, const LayerParts& l,
                       const std::vector<TokenPieces>& tokens,
                       const Matrix& triangle, double scale, Index first_col,
                       Index count)
    : first(first_col),
      cols(count),
      from(first_col / l.w),
      heads(l.heads - from),
      w_(l.w),
      scale_(scale),
      rows_(triangle.block(from * l.w, first_col, heads * l.w, count)) {
  const Index n = static_cast<Index>(tokens.size()), H = l.heads;
  const Index high = heads * w_;
  const double square = scale * scale;
  float_rows_ = rows_.cast<float>();
  rough_ = static_cast<double>(w_ + 40) / roundings_on_the_way(n, H);
  const Matrix per_square = rows_ / square, per_scale = rows_ / scale;
  const RightFactor<double> times_square(as_is(per_square));
  const RightFactor<double> times_scale(as_is(per_scale));

  value.resize(H);
  value_size.resize(H, heads);
  parallel_for(H, l.threads, [&](Index h) {
    value[h].resize(heads, w_ * cols);
    for (Index g = 0; g < heads; ++g) {
      const Matrix gram =
          parts.value_gram().block(h * w_, (from + g) * w_, w_, w_) / square;
      Matrix of_pair(w_, cols);
      of_pair.noalias() = gram * rows_.middleRows(g * w_, w_);
      value_size(h, g) = of_pair.norm();
      value[h].row(g) = flatten(of_pair).transpose().cast<float>();
    }
  });

  token.resize(n);
  parallel_for(n, l.threads, [&](Index i) {
    Token& to = token[i];
    to.by_head.resize(heads, n * cols);
    to.by_token.resize(n, heads * cols);
    to.steps_size.resize(heads);
    to.row_size.resize(n, heads);
    const Matrix z = parts.sloped_steps(i, {0, n});
    Matrix y(n, cols);
    for (Index g = 0; g < heads; ++g) {
      y.noalias() =
          (z.middleCols((from + g) * w_, w_) / tokens[i].unit[from + g]) *
          rows_.middleRows(g * w_, w_);
      to.steps_size[g] = y.norm();
      to.row_size.col(g) = y.rowwise().norm();
      to.by_head.row(g) = flatten(y).transpose().cast<float>();
      to.by_token.middleCols(g * cols, cols) = y.cast<float>();
    }
    const Matrix& own = parts.own(i);
    Matrix made(H * w_, cols);
    gemm(transposed(view(own, {from * w_, 0, high, H * w_})), times_square,
         view(made));
    to.own_size.resize(H);
    for (Index h = 0; h < H; ++h)
      to.own_size[h] = made.middleRows(h * w_, w_).norm();
    to.own = made.cast<float>();

    Matrix queries(H * l.k, (n - 1 - i) * H);
    for (Index other = i + 1; other < n; ++other)
      queries.middleCols((other - i - 1) * H, H) =
          tokens[other].query.transpose();
    const Matrix pulled = parts.own_times(i, queries);
    made.resize(queries.cols(), cols);
    gemm(transposed(view(pulled, {from * w_, 0, high, queries.cols()})),
         times_scale, view(made));
    to.later_size = made.rowwise().norm();
    to.later = made.cast<float>();
  });
}

void PiecesBand::own_by_heads(const Matrix& own, FloatMatrix& to,
                              Matrix& size) const {
  const Index H = own.rows() / w_, area = w_ * cols;
  const FloatMatrix scaled =
      (own.middleCols(from * w_, heads * w_) / (scale_ * scale_)).cast<float>();
  to.resize(H * heads, area);
  size.resize(H, heads);
  for (Index g = 0; g < heads; ++g) {
    const double of_rows = rough_ * rows_.middleRows(g * w_, w_).norm();
    for (Index h = 0; h < H; ++h) {
      const Rectangle block{h * w_, g * w_, w_, w_};
      View<float> piece(to.row(h * heads + g).data(), w_, cols,
                        Eigen::OuterStride<>(cols));
      gemm(as_is(view(scaled, block)),
           as_is(view(float_rows_, {g * w_, 0, w_, cols})), piece);
      size(h, g) =
          std::sqrt(sum_of_squares(ConstView<float>(
              piece.data(), w_, cols, Eigen::OuterStride<>(cols)))) +
          of_rows * scaled.block(h * w_, g * w_, w_, w_).cast<double>().norm();
    }
  }
}

Matrix PiecesBand::values_of(const TokenPieces& of) const {
  Matrix out(of.value.rows(), heads * cols);
  for (Index g = 0; g < heads; ++g)
    out.middleCols(g * cols, cols).noalias() =
        (of.value.middleCols((from + g) * w_, w_) / scale_) *
        rows_.middleRows(g * w_, w_);
  return out;
}

}  // namespace lipscope
