#include "tests/campaign/draw.h"

#include <algorithm>
#include <cmath>

#include "lipscope/attention/head_weights.h"

namespace lipscope::campaign {
namespace {

Matrix of_rank_one(Index rows, Index cols, Dice& dice) {
  return dice.gaussian(rows, 1) * dice.gaussian(1, cols);
}

Matrix of_signs(Matrix m) {
  for (Index i = 0; i < m.size(); ++i) {
    double& entry = m.data()[i];
    entry = entry > 0.5 ? 1.0 : entry < -0.5 ? -1.0 : 0.0;
  }
  return m;
}

double draw_scale(Dice& dice) {
  return dice.chance(0.3) ? dice.log_uniform(1e-3, 1e3)
                          : std::exp(0.7 * dice.normal());
}

// a logit from above: |q||k|/√k of the longest token
double largest_logit(const AttentionWeights& w, Kind kind, double R) {
  if (kind == Kind::cosine) return 0.0;
  const double q =
      w.query.norm() * R + (w.query_bias.size() ? w.query_bias.norm() : 0.0);
  if (kind == Kind::l2) return q * q;
  const double k =
      w.key.norm() * R + (w.key_bias.size() ? w.key_bias.norm() : 0.0);
  return q * k;
}

// what cancels in |q − k|² where queries and keys are not tied
double squares_in_distance(const AttentionWeights& w, double R) {
  const auto size = [&](const Matrix& m, const Vector& b) {
    return m.norm() * R + (b.size() ? b.norm() : 0.0);
  };
  const double sum = size(w.query, w.query_bias) + size(w.key, w.key_bias);
  return sum * sum;
}

constexpr double most_logit = 1e6;

}  // namespace

void keep_logits_small(AttentionWeights& w, Kind kind, double radius) {
  for (int halving = 0; halving < 200; ++halving) {
    if (largest_logit(w, kind, radius) <= most_logit) break;
    w.query *= 0.5;
    if (w.query_bias.size()) w.query_bias *= 0.5;
  }
}

void make_logits(AttentionWeights& w, Kind kind, double radius, double logit) {
  const bool distances = kind == Kind::l2_untied;
  const double now = distances ? squares_in_distance(w, radius)
                               : largest_logit(w, kind, radius);
  if (!(now > 0.0)) return;
  const double factor =
      distances || kind == Kind::l2 ? std::sqrt(logit / now) : logit / now;
  w.query *= factor;
  if (w.query_bias.size()) w.query_bias *= factor;
  if (!distances) return;
  w.key *= factor;
  if (w.key_bias.size()) w.key_bias *= factor;
}

void keep_distances_known(AttentionWeights& w, Kind kind, double radius) {
  if (kind == Kind::l2_untied && squares_in_distance(w, radius) > most_logit)
    make_logits(w, kind, radius, most_logit);
}

AttentionWeights draw_weights(const LayerLimits& limits, Dice& dice) {
  const bool tied = limits.kind == Kind::l2;
  const Index d = limits.d > 0 ? limits.d : dice.size(6);
  const Index H = 1 + dice.pick(limits.heads);
  const Index k = limits.even ? 2 * dice.size(2) : dice.size(limits.width);
  const Index w = dice.size(limits.width);
  AttentionWeights a;
  a.heads = H;
  if (H == 2 && !tied && dice.chance(0.2)) a.key_heads = 1;
  const Index G = a.groups();
  a.query = draw_scale(dice) * dice.gaussian(d, H * k);
  if (!tied) a.key = draw_scale(dice) * dice.gaussian(d, G * k);
  a.value = draw_scale(dice) * dice.gaussian(d, G * w);
  if (limits.square || dice.chance(0.7))
    a.output = draw_scale(dice) *
               dice.gaussian(H * w, limits.square ? d : dice.size(6));

  switch (dice.pick(12)) {
    case 0:
      a.query.setZero();
      break;
    case 1:
      (tied ? a.query : a.key).setZero();
      break;
    case 2:
      a.value.setZero();
      break;
    case 3:
      a.query = of_rank_one(d, H * k, dice);
      a.value = of_rank_one(d, G * w, dice);
      break;
    case 4:  // scores x_i A x_jᵀ with A ⪯ 0: what looks away from itself
      if (!tied && G == H) a.query = -a.key;
      break;
    case 5:
      if (!tied && G == H) a.query = a.key;
      break;
    case 6:  // heads that agree
      for (Index h = 1; h < H; ++h)
        a.query.middleCols(h * k, k) = a.query.leftCols(k);
      for (Index g = 1; g < G; ++g) {
        if (!tied) a.key.middleCols(g * k, k) = a.key.leftCols(k);
        a.value.middleCols(g * w, w) = a.value.leftCols(w);
      }
      break;
    case 7:  // identities, up to a factor
      a.query = (dice.chance(0.5) ? -1.0 : 1.0) * draw_scale(dice) *
                Matrix::Identity(d, H * k);
      if (!tied) a.key = Matrix::Identity(d, G * k);
      a.value = Matrix::Identity(d, G * w);
      if (a.output.size()) a.output = Matrix::Identity(H * w, a.output.cols());
      break;
    case 8:  // ties
      a.query = of_signs(a.query);
      if (!tied) a.key = of_signs(a.key);
      a.value = of_signs(a.value);
      break;
    default:
      break;
  }
  if (limits.bias && dice.chance(0.5)) {
    const double bias = std::exp(1.5 * dice.normal());
    a.query_bias = bias * flatten(dice.gaussian(1, H * k));
    if (!tied && dice.chance(0.5))
      a.key_bias = bias * flatten(dice.gaussian(1, G * k));
    if (limits.value_bias && dice.chance(0.5))
      a.value_bias = bias * flatten(dice.gaussian(1, G * w));
  }
  return a;
}

Matrix draw_tokens(const AttentionWeights& w, Kind kind, Index n, Dice& dice) {
  const Index d = w.features();
  double size = dice.chance(0.35) ? dice.log_uniform(1e-3, 1e3)
                                  : std::exp(1.5 * dice.normal());
  // logits of a size that matters
  const double score = largest_logit(w, kind, 1.0);
  if (score > 0.0 && dice.chance(0.5))
    size = std::sqrt(std::exp(1.5 * dice.normal()) / score);

  Matrix x = size * dice.gaussian(n, d);
  switch (dice.pick(8)) {
    case 0:
      for (Index i = 1; i < n; i += 2) x.row(i) = x.row(i - 1);
      break;
    case 1: {  // all along one line, at ±size
      const Matrix u = dice.gaussian(1, d).rowwise().normalized();
      for (Index i = 0; i < n; ++i)
        x.row(i) = (dice.chance(0.5) ? size : -size) * u;
      break;
    }
    case 2:
      x.row(dice.pick(n)) *= dice.log_uniform(10.0, 1e3);
      break;
    case 3:
      x.row(dice.pick(n)).setZero();
      break;
    case 4:  // one token, and all others alike [Castin24]
      for (Index i = 1; i < n; ++i) x.row(i) = -x.row(0);
      break;
    case 5:  // on the sphere
      x = size * x.rowwise().normalized();
      break;
    default:
      break;
  }
  for (int halving = 0; halving < 200; ++halving) {
    if (largest_logit(w, kind, radius_of(x)) <= most_logit) break;
    x *= 0.5;
  }
  return x;
}

NormWeights draw_norm(Index d, Dice& dice) {
  NormWeights norm;
  norm.kind =
      dice.chance(0.5) ? NormWeights::Kind::layer : NormWeights::Kind::rms;
  norm.gain = std::exp(0.7 * dice.normal()) * flatten(dice.gaussian(1, d));
  if (dice.chance(0.3)) norm.gain.setOnes();
  if (dice.chance(0.5))
    norm.bias = std::exp(dice.normal()) * flatten(dice.gaussian(1, d));
  norm.epsilon = dice.log_uniform(1e-6, 1.0);
  return norm;
}

CosineScales draw_scales(Dice& dice) {
  return {.tau = dice.log_uniform(0.1, 10.0),
          .nu = dice.log_uniform(0.1, 10.0),
          .epsilon = dice.log_uniform(1e-4, 1.0)};
}

QueryKeyNorm draw_query_key_norm(const AttentionWeights& w, Dice& dice) {
  const bool over_heads = dice.chance(0.3);
  const Index k = w.query_width();
  const double size = std::exp(0.7 * dice.normal());
  return {
      .query_gain =
          size * flatten(dice.gaussian(1, over_heads ? w.heads * k : k)),
      .key_gain = flatten(dice.gaussian(1, over_heads ? w.groups() * k : k)),
      .epsilon = dice.log_uniform(1e-6, 1.0),
      .over_heads = over_heads};
}

Mask draw_mask(Index n, Dice& dice) {
  for (;;) {
    Mask mask{.hides_later = dice.chance(0.5)};
    if (dice.chance(0.7)) mask.window = 1 + dice.pick(n);
    if (dice.chance(0.5)) {
      if (!mask.hides_later) mask.padding_before = dice.pick(n);
      mask.padding_after = dice.pick(n - mask.padding_before);
    }
    bool sound = true;
    for (Index i = 0; i < n; ++i)
      sound = sound && visible(mask, i, n).size() >= 1;
    if (sound) return mask;
  }
}

double radius_of(const Matrix& x) {
  return std::max(1e-6, x.rowwise().norm().maxCoeff() * (1.0 + 1e-14));
}

Matrix within(Matrix x, double radius) {
  for (Index i = 0; i < x.rows(); ++i) {
    const double length = x.row(i).norm();
    if (length > radius) x.row(i) *= radius / length * (1.0 - 1e-15);
  }
  return x;
}

}  // namespace lipscope::campaign
