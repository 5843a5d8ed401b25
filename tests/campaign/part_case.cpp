// What the bounds are made of: norms of weights, norm layers, MLPs, and maps
// that are divided by their own bound.

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <utility>

#include "lipscope/control/contractive.h"
#include "lipscope/theory/layer_bounds.h"
#include "lipscope/theory/layer_certificates.h"
#include "lipscope/theory/mlp_bound.h"
#include "lipscope/theory/norm_layer_bound.h"
#include "lipscope/theory/norms.h"
#include "tests/campaign/case.h"
#include "tests/campaign/draw.h"
#include "tests/campaign/measured.h"

namespace lipscope::campaign {
namespace {

using Claims = std::vector<Claim>;

Case made(std::string what, Matrix x, std::function<Claims(const Matrix&)> all,
          std::function<Matrix(Matrix)> confined = {}) {
  if (!confined) confined = [](Matrix y) { return y; };
  return {.what = std::move(what),
          .x = std::move(x),
          .confined = std::move(confined),
          .claims = [all = std::move(all)](const Matrix& y,
                                           std::optional<std::size_t> only) {
            Claims claims = all(y);
            if (only) return Claims{claims[*only]};
            return claims;
          }};
}

// a matrix of a scale from 1e-3 to 1e3, of full rank, of rank one, or with
// singular values that decay
Matrix draw_matrix(Dice& dice) {
  const Index rows = dice.size(12), cols = dice.size(12);
  Matrix w = dice.log_uniform(1e-3, 1e3) * dice.gaussian(rows, cols);
  switch (dice.pick(4)) {
    case 0:
      w = w.col(0) * dice.gaussian(1, cols);
      break;
    case 1:
      for (Index j = 0; j < cols; ++j) w.col(j) *= std::pow(0.1, j);
      break;
    case 2:
      w.row(dice.pick(rows)).setZero();
      break;
    default:
      break;
  }
  return w;
}

Case weight_norms(Dice& dice) {
  return made("norms of a matrix", draw_matrix(dice), [](const Matrix& w) {
    const double two = two_norm(w);
    return Claims{
        {"weight_norm_above", two, weight_norm_above(w)},
        {"power_norm_above", two, power_norm_above(w)},
        {"row_sum_above", inf_norm(w), row_sum_above(w)},
        {"longest_row", w.rowwise().norm().maxCoeff(), longest_row(w)}};
  });
}

Case product_norms(Dice& dice) {
  Matrix x = draw_matrix(dice);
  const Matrix other =
      dice.log_uniform(1e-3, 1e3) * dice.gaussian(dice.size(12), x.cols());
  return made("norms of products", std::move(x), [other](const Matrix& w) {
    const Matrix symmetric = w * w.transpose();
    return Claims{
        {"product_norm_above", two_norm(w * other.transpose()),
         product_norm_above(w, other)},
        {"eigenvalue_above", two_norm(symmetric), eigenvalue_above(symmetric)},
        {"power_eigenvalue_above", two_norm(symmetric),
         power_eigenvalue_above(symmetric)},
        {"nonnegative_norm_above", two_norm(w.cwiseAbs()),
         nonnegative_norm_above(w.cwiseAbs())}};
  });
}

Case norm_layers(Dice& dice) {
  const Index d = dice.chance(0.2) ? 2 + dice.pick(60) : 1 + dice.size(8);
  const NormWeights norm = draw_norm(d, dice);
  Matrix x = dice.log_uniform(1e-4, 1e2) * dice.gaussian(dice.size(2), d);
  if (dice.chance(0.3)) {  // one large entry: where rows of J are longest
    x *= 0.1;
    x.col(dice.pick(d)).array() += std::sqrt(norm.epsilon * 2.0 * d);
  }
  const bool layer = norm.kind == NormWeights::Kind::layer;
  const auto f = std::make_shared<LayerNorm<double>>(norm);
  return made(
      layer ? "LayerNorm" : "RMSNorm", std::move(x),
      [norm, layer, f](const Matrix& y) {
        const Matrix J = materialize(*f->linearize(y));
        const double two = two_norm(J);
        Claims claims{
            {"norm_layer_everywhere", two, norm_layer_everywhere(norm).value()},
            {"at X: norm_layer_at", two, norm_layer_at(norm, y).value()}};
        if (layer)
          claims.push_back({"layer_norm_everywhere_inf", inf_norm(J),
                            layer_norm_everywhere_inf(norm).value()});
        return claims;
      });
}

Case mlps(Dice& dice) {
  const Index d = dice.size(6), m = dice.size(6);
  MlpWeights mlp;
  mlp.up = dice.log_uniform(1e-2, 1e2) * dice.gaussian(d, m);
  mlp.down = dice.log_uniform(1e-2, 1e2) * dice.gaussian(m, dice.size(6));
  if (dice.chance(0.4)) mlp.gate = dice.gaussian(d, m);
  if (dice.chance(0.5)) mlp.up_bias = flatten(dice.gaussian(1, m));
  if (mlp.gate.size() && dice.chance(0.5))
    mlp.gate_bias = flatten(dice.gaussian(1, m));
  constexpr Activation all[] = {Activation::gelu, Activation::gelu_tanh,
                                Activation::relu, Activation::silu};
  mlp.activation = all[dice.pick(4)];
  Matrix x = dice.log_uniform(1e-2, 1e2) * dice.gaussian(1, d);
  const double R = radius_of(x);
  const bool gated = mlp.gate.size() > 0;
  const double two = mlp_above(mlp_norms(mlp), R).value();
  const double inf = gated ? 0.0 : mlp_lipschitz(mlp, Norm::inf).value();
  const auto f = std::make_shared<Mlp<double>>(mlp, 1);
  return made(
      gated ? "gated MLP" : "MLP", std::move(x),
      [=](const Matrix& y) {
        const Matrix J = materialize(*f->linearize(y));
        Claims claims{
            {gated ? "mlp_above (gated)" : "mlp_above", two_norm(J), two}};
        if (!gated) claims.push_back({"mlp_lipschitz inf", inf_norm(J), inf});
        return claims;
      },
      [R](Matrix y) { return within(std::move(y), R); });
}

Case contractive(Dice& dice) {
  const AttentionWeights weights = draw_weights({.kind = Kind::l2}, dice);
  const Index n = dice.tokens(6);
  Matrix x = draw_tokens(weights, Kind::l2, n, dice);
  const AttentionOptions options{
      .kind = Kind::l2,
      .mask = dice.chance(0.5) ? Mask::none : Mask::causal,
      .threads = 1};
  const auto f = std::make_shared<ContractiveL2<double>>(weights, options);
  return made("contractive L2", std::move(x), [f](const Matrix& y) {
    return Claims{
        {"contractive L2, inf", inf_norm(materialize(*f->linearize(y))), 1.0}};
  });
}

}  // namespace

Case part_case(Dice dice) {
  switch (dice.pick(5)) {
    case 0:
      return weight_norms(dice);
    case 1:
      return product_norms(dice);
    case 2:
      return norm_layers(dice);
    case 3:
      return mlps(dice);
    default:
      return contractive(dice);
  }
}

}  // namespace lipscope::campaign
