#include "lipscope/cli/answer.h"

#include <cmath>

namespace lipscope::cli {

void tell_radii(const Matrix& x, Record& r) {
  const Vector norms = x.rowwise().norm();
  r.radius_max = norms.maxCoeff();
  r.radius_rms = std::sqrt(norms.squaredNorm() / static_cast<double>(x.rows()));
}

Vector answer(Record& r, const Measurement& m) {
  r.lower = m.lower;
  r.lower_by = m.lower_by;
  r.upper = m.upper;
  if (m.upper && *m.upper > 0) r.upper_log10 = std::log10(*m.upper);
  r.upper_by = m.upper_by;
  r.upper_whp = m.upper_whp;
  r.residual = m.residual;
  r.steps = m.steps;
  r.converged = m.converged;
  return m.direction;
}

// every row is summed, so the value is the norm itself up to rounding, for
// which the bound from above leaves room
Vector answer(Record& r, const InfNorm& m) {
  r.lower = m.value;
  r.lower_by = r.upper_by = "row-sweep";
  r.upper = m.value * (1 + 1e-9);
  if (m.value > 0) r.upper_log10 = std::log10(*r.upper);
  r.steps = m.rows;
  return m.direction;
}

// from below alone: the token norm has no formula
Vector answer(Record& r, const TokenNorm& m) {
  r.lower = m.value;
  r.lower_by = "alternating";
  r.steps = m.steps;
  r.converged = m.converged;
  r.details["token"] = m.token;
  return m.direction;
}

}  // namespace lipscope::cli
