// Tokens that weigh: the bounds in W₂, and under a mask in the conditional
// distance, at measures whose tokens move whole or are cut.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "lipscope/attention/dense.h"
#include "lipscope/theory/bounds.h"
#include "lipscope/transport/measure.h"
#include "tests/campaign/case.h"
#include "tests/campaign/draw.h"
#include "tests/campaign/measured.h"

namespace lipscope::campaign {
namespace {

struct MeasureProblem {
  AttentionWeights weights;
  AttentionOptions options;
  Measure measure;  // x is replaced
  bool cut = false;
  std::vector<Bound> bounds;

  // ‖D^{1/2} J D^{−1/2}‖₂; cutting every token in two equal halves shows what
  // splitting does (transport/local_constant.h)
  double reached(const Matrix& x, bool quick) const {
    Measure at = measure;
    at.x = x;
    if (cut) at = split_evenly(at, 2);
    Matrix J = dense_jacobian(weights, options_on(at, options), at.x);
    const Index n = at.n(), e = J.rows() / n, d = J.cols() / n;
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < n; ++j)
        J.block(i * e, j * d, e, d) *= std::sqrt(at.mass[i] / at.mass[j]);
    return two_norm(J, quick);
  }
};

}  // namespace

Case measure_case(Dice dice) {
  const auto p = std::make_shared<MeasureProblem>();
  p->weights = draw_weights({.kind = Kind::dot, .heads = 2}, dice);
  const bool masked = dice.chance(0.4);
  const Index n = 1 + dice.size(4), d = p->weights.features();
  Matrix x = draw_tokens(p->weights, Kind::dot, n, dice);
  Vector mass = flatten(dice.gaussian(n, 1));
  mass = (dice.log_uniform(0.1, 4.0) * mass.array()).exp();
  if (dice.chance(0.3)) {
    // the two atoms of the worst measures: A = −γI, masses w and 1 − w at ±Ru
    p->weights = {};
    p->weights.query = -Matrix::Identity(d, d);
    p->weights.key = p->weights.value = Matrix::Identity(d, d);
    const double a = dice.log_uniform(0.3, 4.0);  // γR²
    const double R = std::sqrt(a * std::sqrt(static_cast<double>(d)));
    x = Matrix::Zero(n, d);
    x(0, 0) = -R;
    for (Index i = 1; i < n; ++i) x(i, 0) = R;
    mass.setConstant(1.0 / static_cast<double>(n - 1));
    mass[0] = std::exp(-2.0 * a) * std::exp(0.3 * dice.normal());
  }
  mass = (mass / mass.sum()).cwiseMax(1e-9);
  mass /= mass.sum();
  Vector position;
  if (masked) {
    position.resize(n);
    for (Index i = 0; i < n; ++i)
      position[i] = i == 0 ? 0.0 : position[i - 1] + (dice.chance(0.6) ? 1 : 0);
  }
  p->options = {.kind = Kind::dot,
                .mask = masked ? Mask::causal : Mask::none,
                .project = dice.chance(0.75),
                .threads = 1};
  p->measure = make_measure(x, mass, position);
  p->cut = dice.chance(0.5);
  const double R = radius_of(x);
  for (const Bound& b : bounds(p->weights, {.kind = Kind::dot,
                                           .mask = p->options.mask,
                                           .project = p->options.project,
                                           .n = n,
                                           .radius = R}))
    if (b.norm == Norm::w2 || b.norm == Norm::d2) p->bounds.push_back(b);
  return {
      .what = fmt::format("measure mask {} n {} d {} heads {}{}",
                          name_of(p->options.mask), n, d, p->weights.heads,
                          p->cut ? " cut" : ""),
      .x = std::move(x),
      .confined = [R](Matrix y) { return within(std::move(y), R); },
      .claims =
          [p](const Matrix& y, std::optional<std::size_t> only) {
            const double reached = p->reached(y, only.has_value());
            std::vector<Claim> claims;
            for (const Bound& b : p->bounds)
              claims.push_back({b.name + " (measures)", reached, b.value,
                                scores_differ(p->weights, p->options, y)});
            if (only) return std::vector<Claim>{claims[*only]};
            return claims;
          },
  };
}

}  // namespace lipscope::campaign
