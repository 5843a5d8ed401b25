#include "lipscope/control/attack.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "lipscope/control/certify.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/rng.h"

namespace lipscope {
namespace {

// how far beyond a border that is linear the next point goes
constexpr double overshoot = 1.01;
// a start ends when it shrinks what it found by less than this
constexpr double worth_going_on = 1e-3;
// so many linearisations may lead nowhere
constexpr int patience = 4;

// changes of this size and beyond are not looked at
constexpr double farthest = 1e60;

class Attacker {
 public:
  Attacker(const Map<double>& map, const Matrix& head, const Matrix& x)
      : map_(map), head_(head), x_(x), character_(predicted(state(x), head)) {}

  // the characters but that one, by how far the last state is from theirs
  std::vector<Index> nearest(int count) {
    const Vector h = state(x_);
    std::vector<std::pair<double, Index>> all;
    for (Index b = 0; b < head_.cols(); ++b) {
      const Vector apart = head_.col(character_) - head_.col(b);
      if (b != character_ && apart.norm() > 0.0)
        all.emplace_back(h.dot(apart) / apart.norm(), b);
    }
    std::sort(all.begin(), all.end());
    std::vector<Index> characters;
    for (const auto& [distance, b] : all)
      if (static_cast<int>(characters.size()) < count) characters.push_back(b);
    return characters;
  }

  void start(Index target, Matrix delta, int iterations) {
    const Vector apart = head_.col(character_) - head_.col(target);
    double before = 0.0;  // what this start had found
    for (int i = 0; i < iterations; ++i) {
      // where the border bends away from its linearisations, go straight on
      if (i == patience && before == 0.0) delta = expanded(std::move(delta));
      if (changes(delta)) {
        delta = shrunk(std::move(delta));
        const double size = delta.norm();
        if (before > 0.0 && size > (1.0 - worth_going_on) * before) return;
        before = size;
      }
      const Matrix at = x_ + delta;
      const double c = state(at).dot(apart);
      Matrix cotangent = Matrix::Zero(x_.rows(), head_.rows());
      cotangent.row(x_.rows() - 1) = apart.transpose();
      ++evaluations_;
      const Vector g = map_.linearize(at)->apply_adjoint(flatten(cotangent));
      const double size = g.squaredNorm();
      if (!(size > 0.0) || !std::isfinite(size)) return;
      const double step = overshoot * (g.dot(flatten(delta)) - c) / size;
      delta = step * unflatten(g, x_.rows(), x_.cols());
      // a border far beyond what is known is not worth a visit, nor one so far
      // away that squares of its distance are no numbers
      if (best_ && delta.norm() > 3.0 * best_->distance) return;
      if (!(delta.norm() < farthest)) return;
    }
    if (changes(delta)) shrunk(std::move(delta));
  }

  // to the last digits, along the segment
  std::optional<Attack> finish() {
    if (!best_) return std::nullopt;
    Matrix delta = best_->changed - x_;
    shrink(delta, 40);
    best_->evaluations = evaluations_;
    return best_;
  }

  const std::optional<Attack>& best() const { return best_; }

 private:
  Vector state(const Matrix& at) {
    ++evaluations_;
    return map_(at).row(at.rows() - 1).transpose();
  }

  // whether another character is predicted there; the nearest place is kept
  bool changes(const Matrix& delta) {
    const Matrix at = x_ + delta;
    const Index now = predicted(state(at), head_);
    if (now == character_) return false;
    const double distance = (at - x_).norm() * (1.0 + 0x1p-40);
    if (!best_ || distance < best_->distance)
      best_ = Attack{.distance = distance, .changed = at, .character = now};
    return true;
  }

  // the first of delta, 2 delta, 4 delta, … that changes the prediction, or
  // delta if none does
  Matrix expanded(Matrix delta) {
    for (double by = 1.0; by <= 1024.0; by *= 2.0)
      if (changes(by * delta)) return by * delta;
    return delta;
  }

  Matrix shrunk(Matrix delta) { return shrink(delta, 8) * delta; }

  // the smallest multiple of delta that is known to change the prediction
  double shrink(const Matrix& delta, int halvings) {
    double keeps = 0.0, moves = 1.0;
    for (int i = 0; i < halvings; ++i) {
      const double middle = 0.5 * (keeps + moves);
      (changes(middle * delta) ? moves : keeps) = middle;
    }
    return moves;
  }

  const Map<double>& map_;
  const Matrix& head_;
  const Matrix& x_;
  Index evaluations_ = 0;
  Index character_;
  std::optional<Attack> best_;
};

}  // namespace

std::optional<Attack> attack(const Map<double>& map, const Matrix& head,
                             const Matrix& x, const AttackOptions& options) {
  require(x.rows() > 0 && head.cols() >= 2, "attack: {} tokens, {} characters",
          x.rows(), head.cols());
  Attacker attacker(map, head, x);
  const std::vector<Index> targets = attacker.nearest(options.targets);
  for (const Index b : targets)
    attacker.start(b, Matrix::Zero(x.rows(), x.cols()), options.iterations);
  // other ways round, from a change of about the size that is needed; where
  // none is known, of the size of x
  for (int i = 0; i < options.restarts && !targets.empty(); ++i) {
    const Matrix delta =
        gaussian(x.rows(), x.cols(),
                 Rng(options.seed).split(static_cast<std::uint64_t>(i)));
    const auto& best = attacker.best();
    attacker.start(best ? best->character : targets.front(),
                   (best ? best->distance : x.norm()) / delta.norm() * delta,
                   options.iterations);
  }
  return attacker.finish();
}

}  // namespace lipscope
