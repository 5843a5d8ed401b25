#include "lipscope/spectral/power_iteration.h"

#include <cmath>

#include "lipscope/core/errors.h"
#include "lipscope/core/rng.h"

namespace lipscope {

template <class Real>
NormEstimate power_iteration(const LinearOperator<Real>& a,
                             const PowerIterationOptions& options) {
  require(a.rows() > 0 && a.cols() > 0, "power_iteration: a [{}x{}] operator",
          a.rows(), a.cols());
  require(options.tolerance >= 0.0 && options.max_steps > 0,
          "power_iteration: tolerance {}, max_steps {}", options.tolerance,
          options.max_steps);

  NormEstimate estimate;
  Vector next = random_direction(a.cols(), Rng(options.seed));
  while (!estimate.converged && estimate.steps < options.max_steps) {
    // v as the operator sees it, and with the length that it has there
    const VectorOf<Real> v_real = next.template cast<Real>();
    const Vector v = v_real.template cast<double>();
    const double length = v.norm();

    // σ = ‖A v‖ / ‖v‖, and the residual AᵀA v − σ² v
    const VectorOf<Real> image = a.apply(v_real);
    const double sigma = image.template cast<double>().norm() / length;
    next = a.apply_adjoint(image).template cast<double>();
    const double pulled = next.norm();
    if (!std::isfinite(sigma) || !std::isfinite(pulled))
      throw RunError(fmt::format(
          "power_iteration: |A v| is {} and |A'A v| is {} in step {}", sigma,
          pulled, estimate.steps + 1));

    ++estimate.steps;
    estimate.value = sigma;
    estimate.direction = v / length;
    estimate.residual = 0.0;
    if (sigma > 0.0)
      estimate.residual = (next / sigma - sigma * v).norm() / (sigma * length);
    estimate.converged = estimate.residual <= options.tolerance;
    if (pulled == 0.0) break;
    next /= pulled;
  }
  return estimate;
}

template NormEstimate power_iteration(const LinearOperator<float>&,
                                      const PowerIterationOptions&);
template NormEstimate power_iteration(const LinearOperator<double>&,
                                      const PowerIterationOptions&);

}  // namespace lipscope
