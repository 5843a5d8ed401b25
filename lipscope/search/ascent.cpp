#include "lipscope/search/ascent.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include "lipscope/core/errors.h"

namespace lipscope {
namespace {

constexpr std::size_t remembered = 10;  // values that a step is compared with
constexpr double share = 1e-4;  // of the promised gain that a step must bring
constexpr double shortest = 1e-12;  // step before it counts as none

double inner(const Matrix& a, const Matrix& b) {
  return a.cwiseProduct(b).sum();
}

}  // namespace

Ascent ascend(const std::function<Steepness(const Matrix& x)>& f,
              const Region& region, const Matrix& x,
              const AscentOptions& options) {
  require(x.size() > 0 && x.allFinite(),
          "ascend: the [{}x{}] start is empty or not finite", x.rows(),
          x.cols());
  require(options.tolerance >= 0.0 && options.max_evaluations > 0,
          "ascend: tolerance {}, max_evaluations {}", options.tolerance,
          options.max_evaluations);

  require(options.sizes.size() == 0 ||
              (options.sizes.size() == x.rows() &&
               options.sizes.minCoeff() > 0.0 && options.sizes.allFinite()),
          "ascend: {} sizes for {} tokens, or one that is not positive",
          options.sizes.size(), x.rows());
  const Vector sizes =
      options.sizes.size() > 0 ? options.sizes : Vector(Vector::Ones(x.rows()));
  // in units of the sizes; Π is the same there, as it works on each token alone
  const auto in_units = [&](const Matrix& m) {
    return Matrix(sizes.cwiseInverse().asDiagonal() * m);
  };

  Ascent best;
  // value and gradient in the coordinates z; keeps the best
  const auto at = [&](const Matrix& z) {
    const Matrix tokens = tokens_of(region, z);
    Steepness s = f(tokens);
    if (!std::isfinite(s.value) || !s.gradient.allFinite())
      throw RunError("ascend: the objective is not finite");
    ++best.evaluations;
    if (best.evaluations == 1 || s.value > best.value) {
      best.value = s.value;
      best.x = tokens;
    }
    s.gradient = pulled_back(region, s.gradient);
    return s;
  };
  const auto may_go_on = [&] {
    return best.evaluations < options.max_evaluations &&
           (!options.keep_going || options.keep_going());
  };

  Matrix z = coordinates_of(region, x);
  Steepness here = at(z);
  best.start = here.value;
  std::deque<double> last{here.value};
  // a first step of the size of the tokens
  const double size = std::max(in_units(z).norm(), 1e-3);
  double alpha =
      size / std::max((sizes.asDiagonal() * here.gradient).norm(), 1e-300);
  std::deque<double> alphas{alpha};

  const auto step = [&](double length) {
    return Matrix(nearest(region, z + length * sizes.cwiseAbs2().asDiagonal() *
                                          here.gradient) -
                  z);
  };
  while (may_go_on()) {
    // a short step may follow a sharp bend: where it promises nothing, ask the
    // longest of the last ones
    if (inner(here.gradient, step(alpha)) <= options.tolerance * here.value) {
      alpha = *std::max_element(alphas.begin(), alphas.end());
      if (inner(here.gradient, step(alpha)) <= options.tolerance * here.value) {
        best.converged = true;
        break;
      }
    }
    const double least = *std::min_element(last.begin(), last.end());
    const double before = alpha;
    Matrix s = step(alpha);
    double promised = inner(here.gradient, s);
    Steepness next = at(z + s);
    while (next.value < least + share * promised && may_go_on() &&
           alpha > shortest * before) {
      // to the top of the parabola through what is known, within bounds
      const double bend = here.value + promised - next.value;
      alpha *= std::clamp(bend > 0.0 ? 0.5 * promised / bend : 0.5, 0.1, 0.5);
      s = step(alpha);
      promised = inner(here.gradient, s);
      next = at(z + s);
    }
    if (next.value < least + share * promised) {
      // nothing above, however short the step: rounding is all that is left
      best.converged = alpha <= shortest * before;
      break;
    }
    const Matrix y = next.gradient - here.gradient;
    const double curvature = -inner(s, y), length = in_units(s).squaredNorm();
    alpha = curvature > 1e-14 * length ? length / curvature
                                       : 10.0 * std::max(alpha, 1e-12);
    alpha = std::clamp(alpha, 1e-12, 1e12);
    alphas.push_back(alpha);
    if (alphas.size() > 5) alphas.pop_front();
    z += s;
    here = std::move(next);
    last.push_back(here.value);
    if (last.size() > remembered) last.pop_front();
  }
  return best;
}

}  // namespace lipscope
