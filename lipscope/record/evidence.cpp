#include "lipscope/record/evidence.h"

#include <cmath>

namespace lipscope {
namespace {

std::optional<double> if_finite(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

}  // namespace

void set_radii(const Matrix& x, Record& r) {
  const Vector norms = x.rowwise().norm();
  r.radius_max = norms.maxCoeff();
  r.radius_rms = std::sqrt(norms.squaredNorm() / static_cast<double>(x.rows()));
}

void set_lower(Record& r, const Measurement& m) {
  r.lower = m.lower;
  r.lower_by = m.lower_by;
  r.residual = m.residual;
  r.steps = m.steps;
  r.converged = m.converged;
}

Vector set_measured(Record& r, const Measurement& m) {
  set_lower(r, m);
  if (m.upper) set_upper(r, *m.upper, NormMethod::dense_gram);
  r.upper_whp = m.upper_whp;
  return m.direction;
}

// every row is summed, so the value is the norm itself up to rounding, for
// which the bound from above leaves room
Vector set_measured(Record& r, const InfNorm& m) {
  r.lower = m.value;
  r.lower_by = NormMethod::row_sweep;
  set_upper(r, m.value * (1 + 1e-9), NormMethod::row_sweep);
  r.steps = m.rows;
  return m.direction;
}

// from below alone: the token norm has no formula
Vector set_measured(Record& r, const TokenNorm& m) {
  r.lower = m.value;
  r.lower_by = NormMethod::alternating;
  r.steps = m.steps;
  r.converged = m.converged;
  r.details["token"] = m.token;
  return m.direction;
}

void set_upper(Record& r, double value, const KnownBy& by) {
  r.upper = if_finite(value);
  r.upper_log10 = if_finite(std::log10(value));
  r.upper_by = by;
}

void set_upper(Record& r, const Bound& b) {
  r.upper = if_finite(b.value);
  r.upper_log10 = if_finite(b.log10);
  r.upper_by = b;
}

void lower_upper(Record& r, const Bound& b) {
  if (r.upper_log10 && *r.upper_log10 <= b.log10) return;
  if (r.upper && *r.upper <= b.value) return;
  // a bound of 0 says that nothing is mixed; what was measured may be rounding
  if (r.upper && b.value == 0.0) return;
  set_upper(r, b);
}

}  // namespace lipscope
