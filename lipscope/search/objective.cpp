#include "lipscope/search/objective.h"

#include "lipscope/attention/settled_scores.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/rng.h"
#include "lipscope/spectral/dense.h"
#include "lipscope/spectral/golub_kahan.h"
#include "lipscope/spectral/inf_norm.h"
#include "lipscope/spectral/shift_direction.h"
#include "lipscope/spectral/token_norm.h"

namespace lipscope {
namespace {

constexpr Index dense_unknowns = 64;  // up to here a dense decomposition
constexpr Index f64_unknowns = 4096;  // up to here iterations in f64
constexpr int held_for = 20;  // evaluations between two looks at everything

}  // namespace

Objective::Objective(const AttentionWeights& weights,
                     const AttentionOptions& options, Norm norm,
                     std::uint64_t seed)
    : norm_(norm),
      seed_(seed),
      threads_(options.threads),
      f32_(weights, options),
      f64_(weights, options) {
  require(options.sequences == 1, "search: {} sequences; it takes one",
          options.sequences);
  require(norm == Norm::two || norm == Norm::inf || norm == Norm::token,
          "search: norm {}, expected 2, inf or token", name_of(norm));
}

void Objective::restart() {
  last_.resize(0);
  held_ = evaluated_ = 0;
}

Steepness Objective::operator()(const Matrix& x) {
  ++evaluated_;
  try {
    return steepness(x);
  } catch (const TokensTooLarge&) {  // nothing is known there
    return {0.0, Matrix::Zero(x.rows(), x.cols())};
  }
}

Steepness Objective::steepness(const Matrix& x) {
  if (norm_ == Norm::inf)
    return x.size() <= most_swept_rows ? row_sum(x) : token(x, x.size());
  if (norm_ == Norm::token) return token(x, x.rows());
  if (x.size() <= dense_unknowns) return dense(x);
  return x.size() <= f64_unknowns ? spectral(f64_, x) : spectral(f32_, x);
}

Steepness Objective::dense(const Matrix& x) {
  const Matrix j = materialize(*f64_.linearize(x));
  const DenseNorm norm = dense_norm(j);
  if (norm.value == 0.0) return {0.0, Matrix::Zero(x.rows(), x.cols())};
  const Vector u = j * norm.direction / norm.value;
  return {norm.value, f64_.tangent_gradient(x, norm.direction, u)};
}

template <class Real>
Steepness Objective::spectral(const MultiHeadAttention<Real>& f,
                              const Matrix& x) {
  const MatrixOf<Real> at = x.cast<Real>();
  const auto j = f.linearize(at);
  // from the last direction, with something of every other in it: at inputs of
  // high symmetry v alone would never leave its invariant space
  Vector start = random_direction(x.size(), Rng(seed_).split(evaluated_));
  if (last_.size() == 0)
    last_ = shift_direction(f.common_shift(*j), 1).template cast<double>();
  if (last_.size() > 0) start = last_ + 0.1 * start;
  const NormEstimate norm = golub_kahan(*j, {.tolerance = 1e-4,
                                             .max_steps = 40,
                                             .threads = threads_,
                                             .start = start});
  last_ = norm.direction;
  const VectorOf<Real> v = last_.cast<Real>();
  VectorOf<Real> u = j->apply(v);
  const double value = u.template cast<double>().norm();
  if (value == 0.0) return {0.0, Matrix::Zero(x.rows(), x.cols())};
  u /= static_cast<Real>(value);
  return {value, f.tangent_gradient(at, v, u).template cast<double>()};
}

Steepness Objective::row_sum(const Matrix& x) {
  const auto j = f64_.linearize(x);
  if (held_++ % held_for == 0) row_ = inf_norm(*j, {.threads = threads_}).row;
  const Vector u = Vector::Unit(j->rows(), row_);
  const Vector entries = j->apply_adjoint(u);
  const Vector signs =
      entries.unaryExpr([](double entry) { return entry < 0.0 ? -1.0 : 1.0; });
  return {entries.lpNorm<1>(), f64_.tangent_gradient(x, signs, u)};
}

Steepness Objective::token(const Matrix& x, Index tokens) {
  const auto j = f64_.linearize(x);
  TokenNormOptions options{.tolerance = 1e-8,
                           .max_steps = 60,
                           .sweep = tokens_swept(norm_),
                           .seed = seed_};
  const bool again = x.size() <= dense_unknowns && held_ % held_for == 0;
  ++held_;
  if (last_.size() == 0)
    options.likely = shift_direction(f64_.common_shift(*j), 1);
  else
    (again ? options.likely : options.start) = last_;
  const TokenNorm norm = token_norm(*j, tokens, options);
  last_ = norm.direction;
  return {norm.value, f64_.tangent_gradient(x, norm.direction, norm.pull)};
}

}  // namespace lipscope
