#include "lipscope/theory/castin24.h"

namespace lipscope {

const Statement castin24_ball_statement{
    .name = "castin24_ball",
    .norm = Norm::two,
    .mask = "any",
    .citation =
        "Castin24, Lipschitz constant over sequences of n tokens in a "
        "ball of radius R; no query bias"};

Magnitude castin24_ball(double norm_a, double R, Index n) {
  const Magnitude a = Magnitude(norm_a) * R * R;
  const double tokens = static_cast<double>(n);
  return root(Magnitude(3.0) * (a * a * (4.0 * tokens + 1.0) + tokens));
}

const Statement castin24_meanfield_statement{
    .name = "castin24_meanfield",
    .norm = Norm::w2,
    .mask = "none",
    .citation =
        "Castin24, mean-field Lipschitz constant over measures on a "
        "ball of radius R; no query bias"};

Magnitude castin24_meanfield(double norm_a, double R) {
  const Magnitude a = Magnitude(norm_a) * R * R;
  return (Magnitude(1.0) + a * 3.0) * exp_of((a * 2.0).value());
}

const Statement castin24_data_statement{
    .name = "castin24_data",
    .norm = Norm::two,
    .mask = "any",
    .citation =
        "Castin24, Jacobian norm at given tokens from their diameter; "
        "no query bias"};

Magnitude castin24_data(double longest_pull, double diameter, Index n) {
  const Magnitude both = Magnitude(longest_pull) * diameter;
  const double tokens = static_cast<double>(n);
  return root(Magnitude(3.0) * (both * both * (tokens + 1.0) + tokens));
}

}  // namespace lipscope
