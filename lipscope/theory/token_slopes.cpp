#include "lipscope/theory/token_slopes.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lipscope/attention/kinds.h"
#include "lipscope/core/parallel.h"
#include "lipscope/core/rounding.h"
#include "lipscope/theory/magnitude.h"
#include "lipscope/theory/norms.h"

namespace lipscope {
namespace {

template <class Features>
auto& part_of(Features& f, Feature which) {
  return which == Feature::query ? f.q : which == Feature::key ? f.k : f.v;
}

BentHead repeated(const BentHead& head, Index token, Index rows) {
  const auto of = [&](const HeadFeatures<double>& f) {
    return HeadFeatures<double>{.q = f.q.row(token).replicate(rows, 1),
                                .k = f.k.row(token).replicate(rows, 1),
                                .v = f.v.row(token).replicate(rows, 1)};
  };
  return {of(head.raw), of(head.at)};
}

BentHead rows_of(const BentHead& head, const TokenRange& tokens) {
  const auto of = [&](const HeadFeatures<double>& f) {
    return HeadFeatures<double>{
        .q = f.q.middleRows(tokens.begin, tokens.size()),
        .k = f.k.middleRows(tokens.begin, tokens.size()),
        .v = f.v.middleRows(tokens.begin, tokens.size())};
  };
  return {of(head.raw), of(head.at)};
}

const std::optional<BlockNorm<double>>& norm_of(const LayerAt& at,
                                                Feature which) {
  static const std::optional<BlockNorm<double>> none;
  return which == Feature::query ? at.query_norm
         : which == Feature::key ? at.key_norm
                                 : none;
}

// y ↦ ySᵀ with S that of the kind alone, row by row at the rows of the head
Matrix back_through_kind(const LayerParts& l, const BentHead& head,
                         Feature which, const Matrix& y) {
  HeadFeatures<double> back{.q = Matrix::Zero(y.rows(), head.at.q.cols()),
                            .k = Matrix::Zero(y.rows(), head.at.k.cols()),
                            .v = Matrix::Zero(y.rows(), head.at.v.cols())};
  part_of(back, which) = y;
  back =
      kind_of(l.options.kind).f64.cotangent(head.raw, head.at, back, l.options);
  return std::move(part_of(back, which));
}

// the same for rows that are all at one token
Matrix back_at_token(const LayerParts& l, const LayerAt& at, Index h,
                     Feature which, const Matrix& y, Index token) {
  if (at.bent.empty()) return y;
  return back_through_kind(l, repeated(at.bent[h], token, y.rows()), which, y);
}

// the same with S that of q/k-norm, in place
template <class Rows>
void back_through_norm(const LayerParts& l, const BlockNorm<double>& norm,
                       Index h, Index token, Rows&& y) {
  const bool over_heads = l.normed_over_heads();
  y *= (norm.shrink()(token, over_heads ? 0 : h) *
        norm.gain().segment(h * l.k, l.k))
           .asDiagonal();
  if (over_heads) return;  // the rest is of all heads
  const auto u = norm.direction().row(token).segment(h * l.k, l.k);
  y -= (y * u.transpose()).eval() * u / static_cast<double>(l.k);
}

// σ of token_slopes.h, the largest of all tokens
double largest_slope(const LayerParts& l, const LayerAt& at, Index h,
                     Feature which) {
  if (which == Feature::value && at.bent.empty()) return 0.0;
  double most = 0.0;
  for (Index i = 0; i < at.x.rows(); ++i)
    most = std::max(most, slope_size(l, at, h, which, i));
  return most;
}

}  // namespace

Matrix to_projections(const LayerParts& l, const LayerAt& at, Index h,
                      Feature which, const Matrix& y, Index token) {
  Matrix back = back_at_token(l, at, h, which, y, token);
  if (which == Feature::value) return back;
  if (at.rope) at.rope->unrotate_at(token, back);
  if (const auto& norm = norm_of(at, which))
    back_through_norm(l, *norm, h, token, back);
  return back;
}

double slope_size(const LayerParts& l, const LayerAt& at, Index h,
                  Feature which, Index token) {
  double size = 1.0;
  if (!at.bent.empty()) {
    const Matrix& raw = part_of(at.bent[h].raw, which);
    const Matrix& made = part_of(at.bent[h].at, which);
    const Matrix all = Matrix::Identity(made.cols(), made.cols());
    size = back_at_token(l, at, h, which, all, token).norm();
    if (made.cols() == 1 && raw(token, 0) != 0.0)
      size = std::max(size, std::abs(made(token, 0) / raw(token, 0)));
  }
  if (const auto& norm = norm_of(at, which))
    size *= norm->shrink()(token, l.normed_over_heads() ? 0 : h) *
            norm->gain().segment(h * l.k, l.k).cwiseAbs().maxCoeff();
  return size;
}

Matrix query_at_keys(const LayerParts& l, const LayerAt& at, Index i,
                     const TokenRange& keys) {
  const Index n = at.x.rows(), width = at.q.cols() / l.heads;
  const Index size = keys.size();
  Matrix out(size, l.heads * l.k), one;
  for (Index h = 0; h < l.heads; ++h) {
    HeadFeatures<double> rows{
        .q = Matrix::Zero(at.rope ? n : 0, l.k),
        .k = at.q.row(i).segment(h * width, width).replicate(size, 1)};
    if (!at.bent.empty())
      rows.k = back_through_kind(
          l, size == n ? at.bent[h] : rows_of(at.bent[h], keys), Feature::key,
          rows.k);
    if (at.rope && size == n)
      at.rope->unrotate(rows);
    else if (at.rope)
      for (Index r = 0; r < size; ++r) {
        one = rows.k.row(r);
        at.rope->unrotate_at(keys.begin + r, one);
        rows.k.row(r) = one;
      }
    if (at.key_norm)
      for (Index r = 0; r < size; ++r)
        back_through_norm(l, *at.key_norm, h, keys.begin + r, rows.k.row(r));
    out.middleCols(h * l.k, l.k) = rows.k;
  }
  return out;
}

Matrix shared_direction(const LayerParts& l, const LayerAt& at, Feature which) {
  if (!l.normed_over_heads()) return {};
  return norm_of(at, which)->direction() /
         std::sqrt(static_cast<double>(l.heads * l.k));
}

Matrix value_slopes_above(const LayerParts& l, const LayerAt& at) {
  const Index n = at.x.rows();
  Matrix out = Matrix::Ones(n, l.heads);
  if (kind_of(l.options.kind).values_as_they_are) return out;
  parallel_for(n, l.threads, [&](Index i) {
    for (Index h = 0; h < l.heads; ++h)
      out(i, h) = weight_norm_above(to_projections(
          l, at, h, Feature::value, Matrix::Identity(l.w, l.w), i));
  });
  return out;
}

Matrix query_parts(const LayerParts& l, const LayerAt& at,
                   const Matrix& centre) {
  const Index n = at.x.rows(), w = l.w, width = at.k.cols() / l.heads;
  Matrix out(n * w, l.heads * l.k);
  parallel_for(n, l.threads, [&](Index i) {
    for (Index h = 0; h < l.heads; ++h) {
      const Matrix steps =
          at.v.middleCols(h * w, w).rowwise() - centre.row(i).segment(h * w, w);
      const Matrix c = steps.transpose() *
                       at.slope(h).row(i).transpose().asDiagonal() *
                       at.k.middleCols(h * width, width);
      out.block(i * w, h * l.k, w, l.k) =
          to_projections(l, at, h, Feature::query, c, i);
    }
  });
  return out;
}

double slope_rounding(const LayerParts& l, const LayerAt& at) {
  if (at.bent.empty() && !at.query_norm) return 0.0;
  const bool over_heads = l.normed_over_heads();
  const Index width = at.q.cols() / l.heads;
  Vector sums(l.heads);
  parallel_for(l.heads, l.threads, [&](Index h) {
    const auto longest = [&](const Matrix& m, Index columns) {
      return m.middleCols(h * columns, columns).rowwise().norm().maxCoeff();
    };
    const auto moved = [&](Feature which, double size) {
      return largest_slope(l, at, h, which) * size;
    };
    const auto size_of = [&](const Matrix& weights) {
      return over_heads ? weights.norm()
                        : weights.middleCols(h * l.k, l.k).norm();
    };
    double largest = longest(at.v, l.w);
    if (kind_of(l.options.kind).values_as_they_are)
      largest =
          std::max(largest, at.x.rowwise().norm().maxCoeff() * l.value_size[h]);
    const double v = 2 * largest;
    sums[h] =
        moved(Feature::value, l.value_size[h]) +
        moved(Feature::key, size_of(l.key)) * longest(at.q, width) * v +
        moved(Feature::query, size_of(l.query)) * longest(at.k, width) * v;
  });
  const double n = static_cast<double>(at.x.rows());
  const double output =
      l.projected ? l.output.norm() : std::sqrt(double(l.heads * l.w));
  double unit = 1e-13;
  if (over_heads)
    unit += 4 * unit_roundoff * static_cast<double>(l.heads * l.k);
  return well_above(unit * n * std::sqrt(n) * output * sums.sum());
}

}  // namespace lipscope
