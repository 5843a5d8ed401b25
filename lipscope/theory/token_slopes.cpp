#include "lipscope/theory/token_slopes.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lipscope/attention/kinds.h"
#include "lipscope/core/parallel.h"
#include "lipscope/theory/magnitude.h"
#include "lipscope/theory/norms.h"

namespace lipscope {
namespace {

template <class Features>
auto& part_of(Features& f, Feature which) {
  return which == Feature::query ? f.q : which == Feature::key ? f.k : f.v;
}

HeadFeatures<double> repeated(const HeadFeatures<double>& f, Index token,
                              Index rows) {
  return {.q = f.q.row(token).replicate(rows, 1),
          .k = f.k.row(token).replicate(rows, 1),
          .v = f.v.row(token).replicate(rows, 1)};
}

// σ of token_slopes.h for one feature of a head, the largest of all tokens
double largest_slope(const LayerParts& l, const LayerAt& at, Index h,
                     Feature which) {
  const Matrix& raw = part_of(at.bent[h].raw, which);
  const Matrix& made = part_of(at.bent[h].at, which);
  const Matrix all = Matrix::Identity(made.cols(), made.cols());
  double most = 0.0;
  for (Index i = 0; i < raw.rows(); ++i) {
    most = std::max(most, back_through_kind(l, at, h, which, all, i).norm());
    if (made.cols() == 1 && raw(i, 0) != 0.0)
      most = std::max(most, std::abs(made(i, 0) / raw(i, 0)));
  }
  return most;
}

}  // namespace

Matrix back_through_kind(const LayerParts& l, const LayerAt& at, Index h,
                         Feature which, const Matrix& y,
                         std::optional<Index> token) {
  if (at.bent.empty()) return y;
  const BentHead& head = at.bent[h];
  const KindFeatures<double>& features = kind_of(l.options.kind).f64;
  HeadFeatures<double> back{.q = Matrix::Zero(y.rows(), head.at.q.cols()),
                            .k = Matrix::Zero(y.rows(), head.at.k.cols()),
                            .v = Matrix::Zero(y.rows(), head.at.v.cols())};
  part_of(back, which) = y;
  back = token ? features.cotangent(repeated(head.raw, *token, y.rows()),
                                    repeated(head.at, *token, y.rows()), back,
                                    l.options)
               : features.cotangent(head.raw, head.at, back, l.options);
  return std::move(part_of(back, which));
}

void turn_queries_back(const LayerParts& l, const LayerAt& at, Index each,
                       Matrix& y) {
  if (!at.rope) return;
  const Index n = at.x.rows(), k = l.k;
  parallel_for(l.heads, l.threads, [&](Index h) {
    HeadFeatures<double> rows{.q = Matrix(n, k), .k = Matrix::Zero(n, k)};
    for (Index s = 0; s < each; ++s) {
      for (Index i = 0; i < n; ++i)
        rows.q.row(i) = y.row(i * each + s).segment(h * k, k);
      at.rope->unrotate(rows);
      for (Index i = 0; i < n; ++i)
        y.row(i * each + s).segment(h * k, k) = rows.q.row(i);
    }
  });
}

Matrix query_at_keys(const LayerParts& l, const LayerAt& at, Index i) {
  const Index n = at.x.rows(), width = at.q.cols() / l.heads;
  Matrix out(n, l.heads * l.k);
  for (Index h = 0; h < l.heads; ++h) {
    HeadFeatures<double> rows{.q = Matrix::Zero(at.rope ? n : 0, l.k)};
    rows.k = back_through_kind(
        l, at, h, Feature::key,
        at.q.row(i).segment(h * width, width).replicate(n, 1));
    if (at.rope) at.rope->unrotate(rows);
    out.middleCols(h * l.k, l.k) = rows.k;
  }
  return out;
}

Matrix value_slopes_above(const LayerParts& l, const LayerAt& at) {
  const Index n = at.x.rows();
  Matrix out = Matrix::Ones(n, l.heads);
  if (kind_of(l.options.kind).values_as_they_are) return out;
  parallel_for(n, l.threads, [&](Index i) {
    for (Index h = 0; h < l.heads; ++h)
      out(i, h) = weight_norm_above(back_through_kind(
          l, at, h, Feature::value, Matrix::Identity(l.w, l.w), i));
  });
  return out;
}

double slope_rounding(const LayerParts& l, const LayerAt& at) {
  if (at.bent.empty()) return 0.0;
  Vector sums(l.heads);
  parallel_for(l.heads, l.threads, [&](Index h) {
    const auto longest = [](const Matrix& m) {
      return m.rowwise().norm().maxCoeff();
    };
    const auto moved = [&](Feature which, double size) {
      return largest_slope(l, at, h, which) * size;
    };
    const auto size_of = [&](const Matrix& weights) {
      return weights.middleCols(h * l.k, l.k).norm();
    };
    const HeadFeatures<double>& f = at.bent[h].at;
    const double largest =
        kind_of(l.options.kind).values_as_they_are
            ? std::max(longest(f.v), longest(at.x) * l.value_size[h])
            : longest(f.v);
    const double v = 2 * largest;
    sums[h] = moved(Feature::value, l.value_size[h]) +
              moved(Feature::key, size_of(l.key)) * longest(f.q) * v +
              moved(Feature::query, size_of(l.query)) * longest(f.k) * v;
  });
  const double n = static_cast<double>(at.x.rows());
  const double output =
      l.projected ? l.output.norm() : std::sqrt(double(l.heads * l.w));
  return well_above(1e-13 * n * std::sqrt(n) * output * sums.sum());
}

}  // namespace lipscope
