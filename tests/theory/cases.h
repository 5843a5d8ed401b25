#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "lipscope/attention/dense.h"
#include "lipscope/attention/kinds.h"
#include "lipscope/core/rng.h"
#include "lipscope/spectral/dense.h"
#include "lipscope/theory/bounds.h"

/// Small layers and inputs that try to break a bound.
namespace lipscope::test {

inline double norm2(const Matrix& m) { return dense_norm(m).value; }
inline double norm_inf(const Matrix& m) {
  return m.cwiseAbs().rowwise().sum().maxCoeff();
}

/// The norm induced by the largest token norm, from below: n tokens of unit
/// length that together move one output most, by alternating from one start.
inline double token_norm_below(const Matrix& J, Index n, Rng rng) {
  const Index e = J.rows() / n, d = J.cols() / n;
  double best = 0.0;
  for (Index i = 0; i < n; ++i) {
    const Matrix rows = J.middleRows(i * e, e);
    Vector u = random_direction(e, rng.split(i));
    for (int step = 0; step < 6; ++step) {
      Vector v = rows.transpose() * u;
      for (Index j = 0; j < n; ++j) {
        const double length = v.segment(j * d, d).norm();
        if (length > 0.0) v.segment(j * d, d) /= length;
      }
      const Vector y = rows * v;
      best = std::max(best, y.norm());
      if (y.norm() > 0.0) u = y / y.norm();
    }
  }
  return best;
}

inline Matrix scalar(double a) { return Matrix::Constant(1, 1, a); }

inline AttentionWeights one_by_one(double q, double k, double v) {
  AttentionWeights w;
  w.query = scalar(q);
  w.key = scalar(k);
  w.value = scalar(v);
  return w;
}

/// The same without a key: tied.
inline AttentionWeights tied(double q, double v) {
  AttentionWeights w = one_by_one(q, 0, v);
  w.key = Matrix();
  return w;
}

/// Two heads, k = 4, w = 1, d = 1: |W_Q^1| = (1, 2, 0, 0), |W_Q^2| = (0, 0, 3,
/// −1)
inline AttentionWeights two_l2_heads() {
  AttentionWeights w;
  w.heads = 2;
  w.query = (Matrix(1, 8) << 1, 2, 0, 0, 0, 0, 3, -1).finished();
  w.value = (Matrix(1, 2) << 5, 2).finished();
  w.output = (Matrix(2, 3) << 1, 0, 2, 0, 3, -2).finished();
  return w;
}

/// One try: a layer, a mask, a sequence.
struct Trial {
  AttentionWeights weights;
  AttentionOptions options;
  Matrix x;
};

/// Trial number `seed`: sizes, masks, biases, radii and kinds of input in turn
/// and at random. Half have a query bias.
inline Trial trial(Kind kind, std::uint64_t seed) {
  const Rng rng(seed);
  Rng dice = rng.split(100);
  const auto pick = [&](Index below) {
    return static_cast<Index>(dice.uniform() * static_cast<double>(below));
  };
  const Index d = 1 + pick(4), heads = 1 + pick(2), n = 1 + pick(5);
  const Index k = 1 + pick(2), w = 1 + pick(2);
  const double size = std::exp(2.0 * dice.normal());
  Trial t;
  t.options = {.kind = kind,
               .mask = pick(2) == 0 ? Mask::none : Mask::causal,
               .project = pick(3) != 0,
               .threads = 1};
  t.options.cosine = {.tau = 2.0, .nu = 1.0, .epsilon = 0.1};
  t.weights.heads = heads;
  t.weights.query = gaussian(d, heads * k, rng.split(0));
  if (!kind_of(kind).tied) t.weights.key = gaussian(d, heads * k, rng.split(1));
  t.weights.value = gaussian(d, heads * w, rng.split(2));
  if (pick(3) != 0)
    t.weights.output = gaussian(heads * w, 1 + pick(4), rng.split(3));
  if (seed % 2 == 0) {
    const double bias = std::exp(1.5 * dice.normal());
    t.weights.query_bias = bias * flatten(gaussian(1, heads * k, rng.split(4)));
    if (!kind_of(kind).tied && pick(2) == 0)
      t.weights.key_bias = bias * flatten(gaussian(1, heads * k, rng.split(5)));
    if (pick(2) == 0)
      t.weights.value_bias =
          bias * flatten(gaussian(1, heads * w, rng.split(6)));
  }

  t.x = size * gaussian(n, d, rng.split(7));
  switch (seed / 2 % 5) {
    case 0:  // as drawn
      break;
    case 1:  // repeated tokens
      for (Index i = 1; i < n; i += 2) t.x.row(i) = t.x.row(i - 1);
      break;
    case 2: {  // ±t along a direction the first query column cannot see
      Vector u = flatten(gaussian(1, d, rng.split(8)));
      const Vector q = t.weights.query.col(0);
      u -= q * (q.dot(u) / q.squaredNorm());
      if (d == 1) u = Vector::Ones(1);
      for (Index i = 0; i < n; ++i)
        t.x.row(i) = (i == 0 ? 0.0 : i % 2 == 0 ? size : -size) * u.transpose();
      break;
    }
    case 3:  // huge, then tiny
      t.x *= seed % 4 < 2 ? 1e3 : 1e-3;
      break;
    case 4:  // ties: all tokens of one length along one line
      for (Index i = 0; i < n; ++i)
        t.x.row(i) = (pick(2) == 0 ? size : -size) *
                     random_direction(d, rng.split(9)).transpose();
      break;
  }
  return t;
}

/// A mask of n ≥ 2 tokens with a window, padding or both, under which each sees
/// one; for tied L2 attention without padding.
inline Mask draw_mask(Kind kind, Index n, Rng& dice) {
  const auto pick = [&](Index below) {
    return static_cast<Index>(dice.uniform() * static_cast<double>(below));
  };
  for (;;) {
    Mask mask{.hides_later = pick(2) == 0};
    if (pick(3) != 0) mask.window = 1 + pick(n);
    if (kind != Kind::l2 && pick(2) == 0) {
      mask.padding_before = mask.hides_later ? 0 : pick(n);
      mask.padding_after = pick(n - mask.padding_before);
    }
    bool sound = mask != Mask::none && mask != Mask::causal;
    for (Index i = 0; i < n; ++i)
      sound = sound && visible(mask, i, n).size() >= 1;
    if (sound) return mask;
  }
}

/// Trial number `seed` under such a mask, with two tokens or more.
inline Trial masked_trial(Kind kind, std::uint64_t seed) {
  Trial t = trial(kind, seed);
  Rng dice = Rng(seed).split(200);
  if (t.x.rows() < 3) {
    const double size = t.x.rowwise().norm().maxCoeff();
    t.x = size * gaussian(6, t.x.cols(), dice.split(1));
  }
  t.options.mask = draw_mask(kind, t.x.rows(), dice);
  return t;
}

inline Matrix jacobian(const Trial& t) {
  return dense_jacobian(t.weights, t.options, t.x);
}

inline double radius(const Matrix& x) {
  return std::max(1e-6, x.rowwise().norm().maxCoeff() * (1.0 + 1e-14));
}

/// x after `steps` random moves inside the ball of radius R, each kept if the
/// 2-norm of the Jacobian grew.
inline Matrix climb(Trial t, double R, int steps, Rng rng) {
  double best = norm2(jacobian(t));
  double reach = 0.5 * R;
  for (int s = 0; s < steps; ++s) {
    const Matrix before = t.x;
    t.x += reach * gaussian(t.x.rows(), t.x.cols(), rng.split(s));
    for (Index i = 0; i < t.x.rows(); ++i)
      if (t.x.row(i).norm() > R) t.x.row(i) *= R / t.x.row(i).norm();
    const double now = norm2(jacobian(t));
    if (now > best) {
      best = now;
    } else {
      t.x = before;
      reach *= 0.85;
    }
  }
  return t.x;
}

inline BoundSetting setting_of(const Trial& t, double R) {
  return {.kind = t.options.kind,
          .mask = t.options.mask,
          .heads = t.options.heads,
          .project = t.options.project,
          .n = t.x.rows(),
          .radius = R,
          .cosine = t.options.cosine};
}

/// The measured norm that a bound speaks of.
inline double measured(const Matrix& J, Norm norm, Index n, const Rng& rng) {
  if (norm == Norm::inf) return norm_inf(J);
  if (norm == Norm::token) return token_norm_below(J, n, rng);
  return norm2(J);
}

inline const Bound* find(const std::vector<Bound>& bounds,
                         const std::string& name) {
  for (const Bound& b : bounds)
    if (b.name == name) return &b;
  return nullptr;
}

/// The value of the bound of this name, which must be among those that apply.
inline double bound_value(const AttentionWeights& w, const BoundSetting& q,
                          const std::string& name) {
  const std::vector<Bound> all = bounds(w, q);
  const Bound* b = find(all, name);
  EXPECT_NE(b, nullptr) << name;
  return b ? b->value : NAN;
}

/// Equal up to rounding, and not below.
inline void expect_close(double found, double expected) {
  EXPECT_NEAR(found, expected, 1e-10 * expected);
  EXPECT_GE(found, expected * (1 - 1e-15));
}

}  // namespace lipscope::test
