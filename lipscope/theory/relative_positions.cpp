#include "lipscope/theory/relative_positions.h"

#include <algorithm>
#include <boost/math/special_functions/lambert_w.hpp>
#include <cmath>

#include "lipscope/core/errors.h"
#include "lipscope/core/rounding.h"

namespace lipscope {
namespace {

void require_sound(const Vector& behind) {
  require(behind.size() >= 1 && behind.allFinite(),
          "relative positions: {} distances, whose numbers must be finite",
          behind.size());
}

// p of p e^{p+1} = e^{log_mass}, from above
double phi_inverse(double log_mass) {
  // p + ln p + 1 = log_mass, so that p < log_mass where p ≥ 1
  if (log_mass > 500.0) return log_mass;
  if (log_mass < -500.0) return 1e-200;  // p < e^{log_mass}
  return well_above(
      boost::math::lambert_w0(well_above(std::exp(log_mass - 1.0))));
}

// ln m_t = b_t − b_0 for t = 1, 2, …, from above: with what rounding takes
// from this and from the logarithm of a sum of their exponentials
Vector log_masses(const Vector& behind) {
  const double sizes =
      2.0 * behind.cwiseAbs().maxCoeff() + static_cast<double>(behind.size());
  return behind.tail(behind.size() - 1).array() - behind[0] +
         16.0 * unit_roundoff * sizes + 0x1p-44;
}

double log_sum(const Vector& x) {
  const double largest = x.maxCoeff();
  return largest + std::log((x.array() - largest).exp().sum());
}

}  // namespace

const Statement relative_column_sums_statement{
    .name = "relative_column_sums",
    .norm = Norm::two,
    .mask = "causal",
    .citation =
        "lipscope: column sums of P with a number for each distance, proof in "
        "theory/relative_positions.h"};

Magnitude relative_column_sums(const ScoreSizes& s, const Vector& behind) {
  require_sound(behind);
  const double n = static_cast<double>(behind.size());
  double largest = behind[0], others = 1.0;  // Σ_{u<t} e^{b_u − largest}
  double sum = 1.0;
  for (Index t = 1; t < behind.size(); ++t) {
    const double b = behind[t];
    // from below: what rounding may add to the exponent is taken off
    const double sizes = std::abs(largest) + std::abs(b) + 2.0 * s.spread + n;
    const double exponent =
        largest - b - 2.0 * s.spread - 16.0 * unit_roundoff * sizes;
    sum += 1.0 / (1.0 + others * std::exp(exponent));
    const double raised = std::max(largest, b);
    others = others * std::exp(largest - raised) + std::exp(b - raised);
    largest = raised;
  }
  return Magnitude(s.diagonal) +
         (Magnitude(1.0) + s.pull) *
             root(std::min(n, well_above(sum * (1.0 + 0x1p-40))));
}

double relative_phi_inverse(const Vector& behind) {
  require_sound(behind);
  if (behind.size() == 1) return 0.0;
  return phi_inverse(log_sum(log_masses(behind)));
}

const Statement relative_l2_token_statement{
    .name = "relative_l2_row_sums",
    .norm = Norm::token,
    .mask = "causal",
    .citation =
        "lipscope: Kim21's lemma with masses, in the largest token norm, proof "
        "in theory/relative_positions.h"};

Magnitude relative_l2_token(const Vector& behind) {
  return Magnitude(relative_phi_inverse(behind)) * 4.0 + 1.0;
}

const Statement relative_l2_two_statement{
    .name = "relative_l2",
    .norm = Norm::two,
    .mask = "causal",
    .citation =
        "lipscope: Kim21's lemma with masses and column sums, proof in "
        "theory/relative_positions.h"};

Magnitude relative_l2_two(const Vector& behind) {
  const Magnitude p = relative_phi_inverse(behind);
  Magnitude column = 1.0, weighted = 0.0;
  for (const double log_mass : log_masses(behind)) {
    column = column + well_above(1.0 / (1.0 + std::exp(-log_mass)));
    weighted = weighted + phi_inverse(log_mass);
  }
  return p * 2.0 + root(column) + Magnitude(2.0) * root(p * weighted);
}

}  // namespace lipscope
