#include "lipscope/operators/check.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lipscope/core/errors.h"

namespace lipscope {

DerivativeCheck check_derivative(const Map<double>& f, const Matrix& x,
                                 const Rng& rng) {
  Matrix dx = gaussian(x.rows(), x.cols(), rng);
  dx /= dx.norm();
  const Vector exact = f.linearize(x)->apply(flatten(dx));

  DerivativeCheck best{.error = std::numeric_limits<double>::infinity(),
                       .magnitude = exact.norm()};
  const double size = std::max(1.0, x.cwiseAbs().maxCoeff());
  for (const double h : {1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5}) {
    // (8 (f(x+h) − f(x−h)) − (f(x+2h) − f(x−2h))) / 12h, for h and for h scaled
    // with the tokens: a sharp softmax bends on its own scale
    for (const double step : {h, h * size, h / size}) {
      const Matrix near = f(x + step * dx) - f(x - step * dx);
      const Matrix far = f(x + 2 * step * dx) - f(x - 2 * step * dx);
      const Matrix quotient = (8.0 * near - far) / (12.0 * step);
      const Vector numeric = flatten(quotient);
      const double error =
          (exact - numeric).norm() / std::max(best.magnitude, 1e-300);
      if (error < best.error) {
        best.error = error;
        best.step = step;
        best.identical = exact == numeric;
      }
    }
  }
  return best;
}

template <class Real>
double adjoint_defect(const LinearOperator<Real>& a, const Rng& rng) {
  const Vector v = random_direction(a.cols(), rng.split(0));
  const Vector u = random_direction(a.rows(), rng.split(1));
  const VectorOf<Real> v_real = v.template cast<Real>();
  const VectorOf<Real> u_real = u.template cast<Real>();

  const Vector image = a.apply(v_real).template cast<double>();
  const Vector pullback = a.apply_adjoint(u_real).template cast<double>();
  require(image.size() == a.rows() && pullback.size() == a.cols(),
          "adjoint_defect: a [{}x{}] operator gives {} and {} numbers",
          a.rows(), a.cols(), image.size(), pullback.size());
  const double forward = u_real.template cast<double>().dot(image);
  const double backward = pullback.dot(v_real.template cast<double>());
  const double size = std::max(image.norm(), pullback.norm());
  return size == 0.0 ? 0.0 : std::abs(forward - backward) / size;
}

template double adjoint_defect(const LinearOperator<float>&, const Rng&);
template double adjoint_defect(const LinearOperator<double>&, const Rng&);

}  // namespace lipscope
