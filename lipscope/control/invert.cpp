#include "lipscope/control/invert.h"

#include <algorithm>
#include <cmath>

#include "lipscope/core/errors.h"
#include "lipscope/core/rounding.h"
#include "lipscope/theory/magnitude.h"

namespace lipscope {
namespace {

// 1/(1 − q) from above; 1 − q rounds by less than `well_above` gives
double stretch_above(double q) { return well_above(1.0 / (1.0 - q)); }

// the least k ≥ 1 with qᵏ/(1−q) s ≤ target
int enough_iterations(double q, double first_step, double target) {
  const double share = target * (1.0 - q) / first_step;
  if (!(share < q)) return 1;
  const double k = std::ceil(std::log(share) / std::log(q));
  return k < 1e9 ? static_cast<int>(k) : 1000000000;
}

}  // namespace

double sequence_norm(const Matrix& x, Norm norm) {
  if (x.size() == 0) return 0.0;
  if (norm == Norm::two) return x.norm();
  if (norm == Norm::inf) return x.cwiseAbs().maxCoeff();
  require(norm == Norm::token, "sequence_norm: {}, expected 2, inf or token",
          name_of(norm));
  return x.rowwise().norm().maxCoeff();
}

std::string name_of(InvertStatus status) {
  switch (status) {
    case InvertStatus::converged:
      return "converged";
    case InvertStatus::not_converged:
      return "not-converged";
    case InvertStatus::diverged:
      return "diverged";
  }
  throw std::invalid_argument("name_of: no such status");
}

Matrix ResidualMap::operator()(const Matrix& x) const {
  const Matrix y = (*f)(x);
  require(y.rows() == x.rows() && y.cols() == x.cols(),
          "residual map: f takes [{}x{}] to [{}x{}]", x.rows(), x.cols(),
          y.rows(), y.cols());
  return x + scale * y;
}

std::optional<double> ResidualMap::contraction() const {
  if (!lipschitz) return std::nullopt;
  // a product with one does not round
  const double q = *lipschitz == 1.0 ? scale : next_above(scale * *lipschitz);
  return q < 1.0 ? std::optional(q) : std::nullopt;
}

Inversion invert(const ResidualMap& g, const Matrix& y,
                 const InvertOptions& o) {
  require(g.f != nullptr, "invert: no map");
  require(g.scale > 0.0 && std::isfinite(g.scale), "invert: scale {}", g.scale);
  require(!g.lipschitz || *g.lipschitz >= 0.0,
          "invert: a Lipschitz constant of {}", g.lipschitz.value_or(0.0));
  require(o.tolerance > 0.0, "invert: tolerance {}", o.tolerance);
  require(o.max_iterations >= 1, "invert: {} iterations", o.max_iterations);
  require(y.size() > 0 && y.allFinite(), "invert: [{}x{}] not all finite",
          y.rows(), y.cols());
  const double size = sequence_norm(y, o.norm);
  const double target = o.tolerance * std::max(1.0, size);

  Inversion result;
  result.contraction = g.contraction();
  result.x = y;
  // c f(x), kept: the residual of the last iterate is one evaluation away
  Matrix pull = g(y) - y;
  for (int k = 1; k <= o.max_iterations; ++k) {
    const Matrix next = y - pull;
    const double step = sequence_norm(next - result.x, o.norm);
    const double first = k == 1 ? step : result.steps.front();
    // a norm of numbers near the largest overflows before they do
    if (!next.allFinite() || !(step <= 1e6 * std::max(first, size)) ||
        !std::isfinite(step)) {
      result.status = InvertStatus::diverged;
      break;
    }
    const double delta =
        4.0 * unit_roundoff * size + 1e-12 * sequence_norm(pull, o.norm);
    if (k > 1 && step > 1e3 * delta)
      result.worst_ratio =
          std::max(result.worst_ratio, step / result.steps.back());
    result.steps.push_back(step);
    result.iterations = k;
    result.x = next;

    double reached = step;
    if (const auto q = result.contraction) {
      const double stretch = stretch_above(*q);
      if (k == 1) result.a_priori = enough_iterations(*q, step, target);
      result.rounding = well_above(stretch * delta);
      result.error_bound = well_above(stretch * (*q * step + delta));
      reached = *result.error_bound;
    }
    const bool go_on =
        !o.keep_going || o.keep_going({k, result.x, step, result.error_bound});
    pull = g.scale * (*g.f)(result.x);
    if (reached <= target) {
      result.status = InvertStatus::converged;
      break;
    }
    // what is left is rounding: further steps would change nothing
    if (result.contraction && *result.contraction * step <= 0.1 * delta) break;
    if (!go_on) break;
  }
  const double residual = sequence_norm(result.x + pull - y, o.norm);
  result.residual = std::isfinite(residual) ? residual : INFINITY;
  return result;
}

StackInversion invert_stack(const std::vector<ResidualMap>& maps,
                            const Matrix& y, const InvertOptions& options) {
  StackInversion result;
  result.x = y;
  require(options.given_error >= 0.0, "invert: a given error of {}",
          options.given_error);
  result.error_bound = options.given_error;
  result.rounding = 0.0;
  for (auto g = maps.rbegin(); g != maps.rend(); ++g) {
    Inversion one = invert(*g, result.x, options);
    result.x = one.x;
    if (one.contraction && result.error_bound && one.error_bound) {
      const double stretch = stretch_above(*one.contraction);
      result.error_bound =
          well_above(stretch * *result.error_bound + *one.error_bound);
      result.rounding = well_above(stretch * *result.rounding + *one.rounding);
    } else {
      result.error_bound = result.rounding = std::nullopt;
    }
    if (result.status == InvertStatus::converged) result.status = one.status;
    result.each.push_back(std::move(one));
    if (result.each.back().status == InvertStatus::diverged) break;
  }
  return result;
}

}  // namespace lipscope
