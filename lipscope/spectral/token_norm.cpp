#include "lipscope/spectral/token_norm.h"

#include <algorithm>
#include <cmath>

#include "lipscope/core/errors.h"
#include "lipscope/core/rng.h"

namespace lipscope {
namespace {

// every token of unit length; one that is 0 may point anywhere
Vector unit_tokens(Vector v, Index n) {
  auto tokens = unflatten(v, n, v.size() / n);
  for (Index j = 0; j < n; ++j) {
    const double length = tokens.row(j).norm();
    if (length > 0.0)
      tokens.row(j) /= length;
    else
      tokens(j, 0) = 1.0;
  }
  return v;
}

// what v shows: the longest token of A v
TokenNorm shown(const LinearOperator<double>& a, Index n, Vector v) {
  const Vector y = a.apply(v);
  if (!y.allFinite()) throw RunError("token_norm: a product is not finite");
  const Index e = y.size() / n;
  TokenNorm found;
  for (Index i = 0; i < n; ++i) {
    const double length = y.segment(i * e, e).norm();
    if (length <= found.value) continue;
    found.value = length;
    found.token = i;
  }
  found.pull = Vector::Zero(y.size());
  if (found.value > 0.0)
    found.pull.segment(found.token * e, e) =
        y.segment(found.token * e, e) / found.value;
  found.direction = std::move(v);
  return found;
}

TokenNorm alternate(const LinearOperator<double>& a, Index n, Vector v,
                    const TokenNormOptions& options) {
  TokenNorm best = shown(a, n, unit_tokens(std::move(v), n));
  int steps = 1;
  for (; steps < options.max_steps && !best.converged; ++steps) {
    TokenNorm next = shown(a, n, unit_tokens(a.apply_adjoint(best.pull), n));
    const bool rests = next.value <= best.value * (1.0 + options.tolerance);
    if (next.value > best.value) best = std::move(next);
    best.converged = rests;
  }
  best.steps = steps;
  return best;
}

}  // namespace

TokenNorm token_norm(const LinearOperator<double>& a, Index n,
                     const TokenNormOptions& options) {
  require(n > 0 && a.rows() > 0 && a.rows() % n == 0 && a.cols() % n == 0,
          "token_norm: a [{}x{}] operator does not take {} tokens to as many",
          a.rows(), a.cols(), n);
  require(options.starts + options.sweep > 0 && options.max_steps > 0,
          "token_norm: {} starts, a sweep of {}, max_steps {}", options.starts,
          options.sweep, options.max_steps);
  if (options.start.size() > 0) return alternate(a, n, options.start, options);

  TokenNorm best;
  int steps = 0;
  const auto take = [&](TokenNorm found) {
    steps += found.steps;
    if (found.value > best.value || best.direction.size() == 0)
      best = std::move(found);
  };
  const Rng rng(options.seed);
  if (options.likely.size() > 0) take(alternate(a, n, options.likely, options));
  for (int s = 0; s < options.starts; ++s)
    take(alternate(a, n, random_direction(a.cols(), rng.split(s)), options));

  // each token in turn, or as many as the sweep has, spread over the sequence
  const Index e = a.rows() / n, tried = std::min(n, options.sweep);
  for (Index t = 0; t < tried; ++t) {
    Vector u = Vector::Zero(a.rows());
    u.segment((t + 1) * n / tried * e - e, e) =
        random_direction(e, rng.split(options.starts + t));
    take(alternate(a, n, a.apply_adjoint(u), options));
  }
  best.steps = steps;
  return best;
}

}  // namespace lipscope
