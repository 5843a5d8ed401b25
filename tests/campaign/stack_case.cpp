// Whole small models: the constant of the stack, how far a change carries the
// last state, and the certified radius against an attack.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "lipscope/control/attack.h"
#include "lipscope/control/certify.h"
#include "lipscope/control/deviation.h"
#include "lipscope/theory/stack_constant.h"
#include "tests/campaign/case.h"
#include "tests/campaign/draw.h"
#include "tests/campaign/measured.h"

namespace lipscope::campaign {
namespace {

struct StackProblem {
  Stack stack;
  MapPtr<double> map;
  std::optional<Deviation> deviation;
  std::optional<double> constant;  // of the stack, over the ball
  double r = 1.0;                  // how large a change is
  bool attacked = false;
  Rng rng{0};

  // the change of size r that moves the last state most, by a few steps along
  // the gradient from a random one
  double largest_move(const Matrix& x) const {
    const Index n = x.rows(), d = x.cols();
    const Matrix before = (*map)(x);
    Matrix delta = gaussian(n, d, rng);
    double best = 0.0;
    for (int step = 0; step < 5; ++step) {
      // (a gradient may be too small or too large for its square to be a
      // number)
      const double largest = delta.cwiseAbs().maxCoeff();
      if (!(largest > 0.0) || !delta.allFinite()) break;
      delta /= largest;
      delta *= r / delta.norm() * (1.0 - 1e-15);
      const Matrix at = x + delta;
      const Vector moved = ((*map)(at)-before).row(n - 1).transpose();
      best = std::max(best, moved.norm() / r);
      Matrix cotangent = Matrix::Zero(n, before.cols());
      cotangent.row(n - 1) = moved.transpose();
      delta = unflatten(map->linearize(at)->apply_adjoint(flatten(cotangent)),
                        n, d);
    }
    return best;
  }

  Claim carried(const Matrix& x) const {
    const auto gain = deviation->gain(deviation->at(x), x.rows(), r);
    const double allowed = gain ? gain->value() : INFINITY;
    return {"deviation gain, " + name_of(stack.kind()), largest_move(x),
            allowed};
  }

  Claim radius(const Matrix& x) const {
    const StatesAlong states = deviation->at(x);
    const Readout readout{stack.head, stack.head_bias};
    const CertifiedRadius proved = certified_radius(
        states.last.row(x.rows() - 1).transpose(), readout,
        [&](double size) { return deviation->gain(states, x.rows(), size); });
    const auto found = attack({*map, readout, x.rows() - 1}, x,
                              {.targets = 2, .restarts = 1, .iterations = 8});
    return {"certified_radius, " + name_of(stack.kind()), proved.radius,
            found ? found->distance : INFINITY};
  }

  std::vector<Claim> claims(const Matrix& x,
                            std::optional<std::size_t> only) const {
    std::vector<Claim> all;
    std::size_t number = 0;
    const auto wanted = [&] { return !only || *only == number; };
    if (wanted()) all.push_back(carried(x));
    ++number;
    if (constant) {
      if (wanted())
        all.push_back(
            {"stack_constant, " + name_of(stack.kind()),
             two_norm(materialize(*map->linearize(x)), only.has_value()),
             *constant});
      ++number;
    }
    if (attacked && wanted()) all.push_back(radius(x));
    return all;
  }
};

}  // namespace

Case stack_case(Dice dice) {
  const auto p = std::make_shared<StackProblem>();
  p->rng = Rng(dice.next());
  const Kind kind = dice.chance(0.5) ? Kind::dot : Kind::l2;
  const Index d = 1 + dice.size(3), n = dice.tokens(5);
  constexpr NormPlace places[] = {NormPlace::pre, NormPlace::post,
                                  NormPlace::none};
  const NormPlace place = places[dice.pick(3)];
  p->stack = {.context = n};
  const Index layers = 1 + dice.pick(2);
  for (Index l = 0; l < layers; ++l) {
    LayerWeights w;
    w.attention = draw_weights(
        {.kind = kind, .d = d, .heads = 2, .bias = false, .square = true},
        dice);
    // weights of moderate size, so that radii are numbers
    for (Matrix* m : {&w.attention.query, &w.attention.key, &w.attention.value,
                      &w.attention.output})
      if (m->size() && m->norm() > 3.0) *m *= 3.0 / m->norm();
    w.mlp = {.up = 0.5 * dice.gaussian(d, 4),
             .down = 0.5 * dice.gaussian(4, d)};
    w.mlp.activation = dice.chance(0.5) ? Activation::gelu : Activation::relu;
    if (dice.chance(0.3)) w.mlp.down.setZero();
    w.mask = Mask::causal;
    w.kind = kind;
    w.norm = place;
    if (place != NormPlace::none) {
      w.attention_norm = draw_norm(d, dice);
      w.mlp_norm = draw_norm(d, dice);
    }
    p->stack.layers.push_back(std::move(w));
  }
  if (place == NormPlace::pre) p->stack.last_norm = draw_norm(d, dice);
  p->stack.head = dice.gaussian(d, 3);
  p->map = stack_map(p->stack, 1);
  p->deviation.emplace(p->stack);
  Matrix x = std::exp(0.7 * dice.normal()) * dice.gaussian(n, d);
  const double R = radius_of(x);
  p->r = dice.log_uniform(1e-4, 1.0) * R;
  p->attacked = dice.chance(0.2);
  const StackConstant constant = stack_constant(p->stack, {.radius = R});
  if (constant.hidden && std::isfinite(constant.hidden->value()))
    p->constant = constant.hidden->value();
  return {
      .what = fmt::format("stack of {} layers, {}, norm {}, n {} d {}", layers,
                          name_of(kind), static_cast<int>(place), n, d),
      .x = std::move(x),
      .confined = [R](Matrix y) { return within(std::move(y), R); },
      .claims =
          [p](const Matrix& y, std::optional<std::size_t> only) {
            return p->claims(y, only);
          }};
}

}  // namespace lipscope::campaign
