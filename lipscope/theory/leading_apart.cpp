#include "lipscope/theory/leading_apart.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "lipscope/attention/settled_scores.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/gemm.h"
#include "lipscope/core/parallel.h"
#include "lipscope/core/rng.h"
#include "lipscope/core/rounding.h"
#include "lipscope/theory/gram_by_pieces.h"
#include "lipscope/theory/gram_parts.h"
#include "lipscope/theory/magnitude.h"
#include "lipscope/theory/norms.h"
#include "lipscope/theory/token_slopes.h"

namespace lipscope {
namespace {

// a power of two not below x > 0: dividing by it rounds nothing
double power_of_two_above(double x) {
  return std::exp2(std::ceil(std::log2(x)));
}

// G/scale², scale = of_parts·of_output, and what is known of it
struct ScaledGram {
  Matrix output;  // L/of_output; empty where there is no W_O
  double of_parts = 1.0, of_output = 1.0;
  double frobenius = 0.0;  // from above

  double scale() const { return of_parts * of_output; }
};

// The lower triangular L with LLᵀ ⪰ W_OW_Oᵀ.
Matrix triangular_output(const LayerParts& l) {
  return l.projected ? factor_above(gram_of_rows(l.output)) : Matrix();
}

// The same as size_by_pieces, of parts that are made in f64: for any kind.
PairsSize size_of_pairs(const GramParts& parts, const LayerParts& l, Index n,
                        double square,
                        const std::optional<Triangle>& triangle) {
  const Index full = l.heads * l.w;
  std::vector<std::pair<Index, Index>> pairs;
  for (Index i = 0; i < n; ++i)
    for (Index other = 0; other < i; ++other) pairs.emplace_back(i, other);
  Vector of_parts(pairs.size()), of_gram(pairs.size());
  parallel_for(static_cast<Index>(pairs.size()), l.threads, [&](Index number) {
    const auto [i, other] = pairs[number];
    FloatMatrix part(triangle ? full : 0, full);
    double squares = 0.0;
    parts.each_head_of_part(i, other, [&](Index h, const Matrix& rows) {
      squares += (rows / square).squaredNorm();
      if (triangle)
        part.middleRows(h * l.w, l.w) = (rows / square).cast<float>();
    });
    of_parts[number] = std::sqrt(2 * squares);
    of_gram[number] = triangle
                          ? std::sqrt(2.0) * triangle->frobenius_after(part)
                          : of_parts[number];
  });
  return {.found = of_gram.norm(),
          .error = triangle ? triangle->error() * of_parts.norm() : 0.0};
}

// Nothing where numbers over- or underflow.
std::optional<ScaledGram> scaled_gram(const LayerParts& l, const LayerAt& at,
                                      GramParts& parts) {
  const Index n = at.x.rows(), full = l.heads * l.w;
  ScaledGram out;
  out.output = triangular_output(l);
  if (out.output.size() > 0) {
    const double size = out.output.norm();
    if (!(size > 0.0 && std::isfinite(size))) return std::nullopt;
    out.of_output = power_of_two_above(size);
    out.output /= out.of_output;
  }
  parts.prepare();
  std::optional<Triangle> triangle;
  if (out.output.size() > 0) triangle.emplace(out.output);
  // ‖T_ii'‖_F² ≤ tr T_ii tr T_i'i'
  Vector traces(n), of_parts(n), of_gram(n);
  parallel_for(n, l.threads, [&](Index i) {
    const Matrix part = parts.part(i, i);
    traces[i] = part.trace();
    of_parts[i] = of_gram[i] = part.norm();
    if (!triangle || !(of_parts[i] > 0.0 && std::isfinite(of_parts[i]))) return;
    const double unit = power_of_two_above(of_parts[i]);
    of_gram[i] = unit * triangle->frobenius_after((part / unit).cast<float>());
  });
  const double most = traces.maxCoeff();
  if (!(most > 0.0 && traces.allFinite())) return std::nullopt;
  out.of_parts = power_of_two_above(std::sqrt(most));
  const double square = out.of_parts * out.of_parts;
  PairsSize pairs{.error = INFINITY};
  if (triangle && parts.one_pull())
    pairs = size_by_pieces(parts, l, at, out.output, *triangle, out.of_parts);
  constexpr double much = 3e-3;
  if (!(pairs.error <= much * pairs.found && std::isfinite(pairs.found)))
    pairs = size_of_pairs(parts, l, n, square, triangle);
  const double size = parts.size() / out.scale();
  const double count = static_cast<double>(n * full);
  out.frobenius =
      (std::hypot(pairs.found, of_gram.norm() / square) + pairs.error +
       (triangle ? triangle->error() * of_parts.norm() / square : 0.0) +
       parts.shares().sums * std::sqrt(static_cast<double>(n)) * size * size +
       1e-30 * count) *
      (1 + 1e-9);
  if (!std::isfinite(out.frobenius)) return std::nullopt;
  return out;
}

// Directions of a Krylov space, one row after another; where it comes to its
// end (each of several equal eigenvalues is in it once) from a fresh start.
class Lanczos {
 public:
  Lanczos(const LinearOperator<double>& heads, const ScaledGram& g, Index n,
          Index full, int threads)
      : heads_(heads), g_(g), n_(n), full_(full), threads_(threads) {
    if (g.output.size() > 0) {
      mix_ = RightFactor<double>(as_is(g.output));
      unmix_ = RightFactor<double>(transposed(g.output));
    }
    const Index most = std::min(most_leading, n * full);
    v_ = w_ = Matrix::Zero(most, n * full);
    next_ = random_direction(n * full, start_);
  }

  Directions found() const { return {v_.topRows(count_), w_.topRows(count_)}; }

  /// False where there are as many as there may be.
  bool step() {
    if (count_ == v_.rows()) return false;
    v_.row(count_) = next_.transpose();
    next_ = times_gram(next_);
    w_.row(count_) = next_.transpose();
    ++count_;
    const double before = next_.norm();
    const bool ended = !(orthogonalised() > 1e-8 * before);
    if (ended) {
      next_ = random_direction(next_.size(), start_.split(count_));
      orthogonalised();
    }
    next_.normalize();
    return true;
  }

 private:
  Vector mixed(const Vector& u, const RightFactor<double>& by) const {
    const Matrix rows = unflatten(u, n_, full_);
    return flatten(product(as_is(rows), by, threads_));
  }
  // what is left of next_ beside the directions; its length
  double orthogonalised() {
    const auto v = v_.topRows(count_);
    for (int twice = 0; twice < 2; ++twice)
      next_ -= v.transpose() * (v * next_);
    return next_.norm();
  }
  // J scaled: the heads, then L
  Vector times_gram(const Vector& u) const {
    const bool has_output = g_.output.size() > 0;
    const Vector back =
        heads_.apply_adjoint(has_output ? mixed(u, unmix_) : u) / g_.of_parts;
    const Vector there = heads_.apply(back) / g_.of_parts;
    return has_output ? mixed(there, mix_) : there;
  }

  const LinearOperator<double>& heads_;
  const ScaledGram& g_;
  Index n_, full_;
  int threads_;
  RightFactor<double> mix_, unmix_;
  Rng start_{1};
  Matrix v_, w_;
  Index count_ = 0;
  Vector next_;
};

}  // namespace

double split_off_above(const Directions& directions, double frobenius,
                       double row_error) {
  const Matrix &v = directions.v, &w = directions.w;
  const Index m = v.rows();
  const double m_real = static_cast<double>(m);
  // of the products below, whose sums have a term for each row of G
  const double sums = 2 * unit_roundoff * (m_real + 1) *
                      (static_cast<double>(v.cols() + m) + 8);
  const double skew =
      (v * v.transpose() - Matrix::Identity(m, m)).norm() + sums;
  const double size = w.norm();
  if (!(skew <= 0.25 && std::isfinite(size))) return INFINITY;
  const double error =
      4 * (skew * (frobenius + size) + std::sqrt(m_real) * row_error) +
      sums * size;
  const Matrix a = w * v.transpose();
  const Matrix even = (a + a.transpose()) / 2;
  const double norm_a = eigenvalue_above(even, error);
  const double norm_b = (w - a * v).norm() + error;
  const double least = std::max(0.0, size - error), most = a.norm() + error;
  const double rest =
      frobenius * frobenius * (1 + 1e-12) - 2 * least * least + most * most;
  const double norm_c = rest > 0.0 ? std::sqrt(rest) : 0.0;
  const double apart = (norm_a - norm_c) / 2;
  return well_above((norm_a + norm_c) / 2 +
                    std::sqrt(apart * apart + norm_b * norm_b)) *
         (1 + 1e-12);
}

const Statement leading_apart_statement{
    .name = "leading_apart",
    .norm = Norm::two,
    .mask = "any",
    .citation =
        "lipscope: the Frobenius norm of the Gram matrix of J, its leading "
        "directions apart, theory/leading_apart.h"};

Magnitude leading_apart(const LayerParts& l, const LayerAt& at,
                        const Map<double>& heads) {
  GramParts parts(l, at);
  const double size = parts.size();
  require(std::isfinite(size), "certificate: numbers beyond double");
  const GramParts::Shares shares = parts.shares();
  const Magnitude slopes = slope_rounding(l, at);
  const Magnitude rounding = Magnitude(size) * shares.all + slopes;
  const Magnitude whole = Magnitude(size) + rounding;
  if (!parts.moderate()) return whole;
  const std::optional<ScaledGram> g = scaled_gram(l, at, parts);
  if (!g) return whole;

  double lambda = g->frobenius;
  // what two J may differ by, and so J Jᵀ
  const double apart = 2 * (size * shares.all + slopes.value()) / g->scale();
  const double row_error = apart * (2 * std::sqrt(g->frobenius) + apart);
  try {
    const auto jacobian = heads.linearize(at.x);
    Lanczos lanczos(*jacobian, *g, at.x.rows(), l.heads * l.w, l.threads);
    constexpr Index together = 16;
    for (bool more = true; more;) {
      for (Index s = 0; s < together && more; ++s) more = lanczos.step();
      const double found =
          split_off_above(lanczos.found(), g->frobenius, row_error);
      constexpr double worthwhile = 0.998;
      more = more && found < worthwhile * lambda;
      lambda = std::min(lambda, found);
    }
  } catch (const TokensTooLarge&) {
    // the size of G stands
  }
  return smaller(well_above(g->scale() * std::sqrt(lambda)) + rounding, whole);
}

}  // namespace lipscope
