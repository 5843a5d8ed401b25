#include "lipscope/control/attack.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "lipscope/core/errors.h"
#include "lipscope/core/rng.h"

namespace lipscope {
namespace {

// how far beyond a border that is linear the next point of an approach goes
constexpr double overshoot = 1.01;
// so many linearisations of an approach may lead nowhere
constexpr int patience = 4;
// a walk ends when a whole step makes what it found smaller by less than this
constexpr double worth_going_on = 1e-4;
// to which relative size it is shrunk on the way
constexpr double on_the_way = 1e-5;
// where the border is this much farther than the best change, to first order
constexpr double hopeless = 1.1;
// the share of the gradient in a step of a walk that is too small
constexpr double least_share = 1.0 / 64.0;
// where the angle between change and gradient is below √(2·this)
constexpr double aligned = 1e-8;
// restarts have to be nearer than the best change by this
constexpr double nearer = 0.998;

// changes of this size and beyond are not looked at
constexpr double farthest = 1e60;

// any character but the predicted one
constexpr Index any = -1;

class Attacker {
 public:
  Attacker(const Attacked& attacked, const Matrix& x)
      : map_(attacked.map),
        readout_(attacked.readout),
        row_(attacked.row),
        x_(x),
        start_(state(x)),
        character_(predicted(start_, readout_)) {}

  // The characters but that one whose borders are nearest to first order,
  // c/|g|; of those looked at, which are nearest for the state. With the
  // gradients.
  struct Target {
    Index character = 0;
    double distance = 0.0;
    Matrix gradient;
  };
  std::vector<Target> nearest(int count) {
    std::vector<std::pair<double, Index>> by_state;
    const Vector z = logits_of(start_, readout_);
    for (Index b = 0; b < readout_.weight.cols(); ++b) {
      if (b == character_) continue;
      const double apart = direction(b).norm();
      if (apart > 0.0) by_state.emplace_back((z[character_] - z[b]) / apart, b);
    }
    const auto looked_at =
        std::min(by_state.size(), 3 * static_cast<std::size_t>(count));
    std::partial_sort(by_state.begin(), by_state.begin() + looked_at,
                      by_state.end());
    by_state.resize(looked_at);
    const auto jacobian = map_.linearize(x_);
    ++evaluations_;
    std::vector<Target> targets;
    for (const auto& [distance, b] : by_state) {
      Matrix g = pulled_back(*jacobian, b);
      const double size = g.norm();
      if (size > 0.0 && std::isfinite(size))
        targets.push_back({b, (z[character_] - z[b]) / size, std::move(g)});
    }
    std::stable_sort(targets.begin(), targets.end(),
                     [](const Target& a, const Target& b) {
                       return a.distance < b.distance;
                     });
    if (static_cast<int>(targets.size()) > count) targets.resize(count);
    return targets;
  }

  // From no change to the border of a target, and along it.
  void approach(const Target& target, int iterations) {
    Matrix g = target.gradient, delta = Matrix::Zero(x_.rows(), x_.cols());
    double c = -target.distance * g.norm();
    for (int i = 0; i < std::min(iterations, 2 * patience); ++i) {
      const double step = overshoot * (g.cwiseProduct(delta).sum() - c);
      delta = step / g.squaredNorm() * g;
      // a border far beyond what is known is not worth a visit, nor one so far
      // away that squares of its distance are no numbers
      if (best_ && delta.norm() > 3.0 * best_->distance) return;
      if (!(delta.norm() < farthest)) return;
      Seen now = look(delta);
      // where the border bends away from its linearisations, go straight on
      if (!now.changes && i + 1 == patience) now = expanded(delta);
      if (now.changes) return walk(std::move(delta), any, iterations);
      c = margin(now, target.character);
      g = gradient(delta, target.character);
      if (!(g.norm() > 0.0) || !g.allFinite()) return;
    }
  }

  // On the sphere of delta, or of the best change where that is smaller.
  void walk(Matrix delta, Index target, int iterations) {
    const auto on_sphere = [&] {
      if (best_ && delta.norm() > nearer * best_->distance)
        delta *= nearer * best_->distance / delta.norm();
    };
    Seen now = look(delta);
    if (!now.changes) {
      on_sphere();
      now = look(delta);
    }
    double share = 1.0, before = 0.0;  // what this walk had found
    for (int i = 0; i < iterations; ++i) {
      if (now.changes) {
        now = shrink(delta, now, on_the_way);
        const double size = delta.norm();
        if (before > 0.0 && size > (1.0 - worth_going_on * share) * before)
          return;
        before = size;
        target = any;
      }
      const double r = delta.norm();
      const Index aim = target == any ? now.other : target;
      Matrix g = gradient(delta, aim);
      const double size = g.norm();
      if (!(r > 0.0) || !(size > 0.0) || !std::isfinite(size)) return;
      g /= size;
      const double along = g.cwiseProduct(delta).sum();
      if (1.0 - along / r < aligned) return;
      if (now.changes && along > hopeless * best_->distance) return;
      const double c = margin(now, aim);
      for (;; share *= 0.5) {
        if (share < least_share) return;
        Matrix next = (1.0 - share) / r * delta + share * g;
        if (!(next.norm() > 1e-6)) continue;
        next *= r / next.norm();
        const Seen there = look(next);
        if (!there.changes && !(margin(there, aim) > c)) continue;
        if (there.changes && before > 0.0 && !(there.margin > now.margin))
          continue;
        delta = std::move(next);
        now = there;
        break;
      }
      share = std::min(1.0, 2.0 * share);
    }
    if (now.changes) shrink(delta, now, on_the_way);
  }

  // what moves the state most to first order: JᵀJ a few times
  Matrix strongest(Matrix delta, int times) {
    const auto jacobian = map_.linearize(x_);
    ++evaluations_;
    for (int i = 0; i < times; ++i) {
      Matrix out = unflatten(jacobian->apply(flatten(delta)), x_.rows(),
                             readout_.weight.rows());
      Matrix kept = Matrix::Zero(out.rows(), out.cols());
      kept.row(row_) = out.row(row_);
      const Matrix back = unflatten(jacobian->apply_adjoint(flatten(kept)),
                                    x_.rows(), x_.cols());
      evaluations_ += 2;
      if (!(back.norm() > 0.0) || !back.allFinite()) return delta;
      delta = back / back.norm();
    }
    return delta;
  }

  // to the last digits, along the segment; then once more
  std::optional<Attack> finish() {
    if (!best_) return std::nullopt;
    Matrix delta = best_->changed - x_;
    shrink(delta, look(delta), 1e-13);
    require(predicted(state(best_->changed), readout_) == best_->character &&
                best_->character != character_,
            "attack: the change that was found does not change the prediction");
    best_->evaluations = evaluations_;
    return best_;
  }

  const std::optional<Attack>& best() const { return best_; }

 private:
  // the logits at a changed input
  struct Seen {
    bool changes = false;
    Index other = 0;      // the largest but that of the character
    double margin = 0.0;  // how far it is above the character's
    Vector z;
  };

  Vector state(const Matrix& at) {
    ++evaluations_;
    return map_(at).row(row_).transpose();
  }

  // whether another character is predicted there; the nearest place is kept
  Seen look(const Matrix& delta) {
    const Matrix at = x_ + delta;
    Seen seen;
    seen.z = logits_of(state(at), readout_);
    Index now = 0;
    seen.z.maxCoeff(&now);
    seen.changes = now != character_;
    const double own = seen.z[character_];
    if (seen.changes) {
      seen.other = now;
    } else {
      seen.z[character_] = -std::numeric_limits<double>::infinity();
      seen.z.maxCoeff(&seen.other);
      seen.z[character_] = own;
    }
    seen.margin = seen.z[seen.other] - own;
    if (!seen.changes) return seen;
    const double distance = (at - x_).norm() * (1.0 + 0x1p-40);
    if (!best_ || distance < best_->distance)
      best_ = Attack{.distance = distance, .changed = at, .character = now};
    return seen;
  }

  double margin(const Seen& seen, Index target) const {
    return seen.z[target] - seen.z[character_];
  }

  Vector direction(Index target) const {
    return readout_.weight.col(target) - readout_.weight.col(character_);
  }

  Matrix pulled_back(const LinearOperator<double>& jacobian, Index target) {
    Matrix cotangent = Matrix::Zero(x_.rows(), readout_.weight.rows());
    cotangent.row(row_) = direction(target).transpose();
    ++evaluations_;
    return unflatten(jacobian.apply_adjoint(flatten(cotangent)), x_.rows(),
                     x_.cols());
  }

  Matrix gradient(const Matrix& delta, Index target) {
    return pulled_back(*map_.linearize(x_ + delta), target);
  }

  // to the first of delta, 2 delta, 4 delta, … that changes the prediction, or
  // not at all if none does
  Seen expanded(Matrix& delta) {
    Seen seen;
    for (double by = 1.0; by <= 1024.0; by *= 2.0) {
      seen = look(by * delta);
      if (!seen.changes) continue;
      delta *= by;
      return seen;
    }
    return look(delta);
  }

  // To the smallest multiple of delta that is known to change the prediction,
  // where delta does, by false position on the margin: to a relative tolerance.
  Seen shrink(Matrix& delta, Seen seen, double tolerance) {
    double keeps = 0.0, moves = 1.0;
    double below = logit_gap_at_zero(), above = seen.margin;
    for (int i = 0; i < 60 && moves - keeps > tolerance * moves; ++i) {
      // a little beyond the root, so that it is closed in from both sides; the
      // middle every third time
      const double root =
          keeps +
          (moves - keeps) * (below < 0.0 ? -below / (above - below) : 0.5);
      double middle =
          i % 3 == 2 ? 0.5 * (keeps + moves) : root + 0.25 * tolerance * moves;
      if (!(middle > keeps && middle < moves)) middle = 0.5 * (keeps + moves);
      if (middle == keeps || middle == moves) break;
      Seen there = look(middle * delta);
      if (there.changes) {
        moves = middle;
        above = there.margin;
        seen = std::move(there);
      } else {
        keeps = middle;
        below = there.margin;
      }
    }
    delta *= moves;
    return seen;
  }

  double logit_gap_at_zero() const {
    const Vector z = logits_of(start_, readout_);
    double largest = -std::numeric_limits<double>::infinity();
    for (Index b = 0; b < z.size(); ++b)
      if (b != character_) largest = std::max(largest, z[b]);
    return largest - z[character_];
  }

  const Map<double>& map_;
  const Readout& readout_;
  Index row_;
  const Matrix& x_;
  Index evaluations_ = 0;
  Vector start_;
  Index character_;
  std::optional<Attack> best_;
};

}  // namespace

std::optional<Attack> attack(const Attacked& attacked, const Matrix& x,
                             const AttackOptions& options) {
  require_sound(attacked.readout);
  require(x.rows() > 0 && attacked.row >= 0 && attacked.row < x.rows(),
          "attack: row {} of {} tokens", attacked.row, x.rows());
  Attacker attacker(attacked, x);
  const std::vector<Attacker::Target> targets =
      attacker.nearest(options.targets);
  for (const Attacker::Target& target : targets)
    attacker.approach(target, options.iterations);
  // other ways round, from a change of about the size that is needed; where
  // none is known, of the size of x
  for (int i = 0; i < options.restarts && !targets.empty(); ++i) {
    Matrix delta =
        gaussian(x.rows(), x.cols(),
                 Rng(options.seed).split(static_cast<std::uint64_t>(i)));
    const auto& best = attacker.best();
    if (i % 4 == 1) {  // one token, the last ones first
      const Index token =
          (attacked.row + x.rows() - (i / 4) % x.rows()) % x.rows();
      const Vector kept = delta.row(token);
      delta.setZero();
      delta.row(token) = kept.transpose();
    } else if (i % 4 == 2 && best) {
      delta = delta / delta.norm() + (best->changed - x) / best->distance;
    } else if (i % 4 == 3) {
      delta = attacker.strongest(std::move(delta), 3);
    }
    delta *= (best ? best->distance : x.norm()) / delta.norm();
    const std::size_t aim = static_cast<std::size_t>(i) % (targets.size() + 1);
    attacker.walk(std::move(delta), aim == 0 ? any : targets[aim - 1].character,
                  options.iterations);
  }
  return attacker.finish();
}

}  // namespace lipscope
