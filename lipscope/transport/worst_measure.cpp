#include "lipscope/transport/worst_measure.h"

#include <algorithm>
#include <cmath>

#include "lipscope/core/errors.h"
#include "lipscope/core/parallel.h"
#include "lipscope/core/rng.h"
#include "lipscope/spectral/dense.h"
#include "lipscope/transport/fixed_measure_map.h"
#include "lipscope/transport/weighted_map.h"

namespace lipscope {
namespace {

// What is climbed: the local constant as a function of z = (θ, X).
class Landscape {
 public:
  Landscape(const AttentionWeights& weights, const AttentionOptions& options,
            const WorstMeasureOptions& search, const Measure& start)
      : weights_(weights), options_(options), search_(search), atoms_(start.x) {
    options_.threads = 1;
  }

  Index size() const {
    return atoms_.rows() + (search_.radius ? atoms_.size() : 0);
  }

  Vector coordinates(const Measure& m) const {
    Vector z(size());
    z.head(m.n()) = m.mass.array().log();
    if (search_.radius) z.tail(m.x.size()) = flatten(m.x);
    return z;
  }

  Measure measure(const Vector& z) const {
    const Index n = atoms_.rows();
    Vector mass = (z.head(n).array() - z.head(n).maxCoeff()).exp();
    mass /= mass.sum();
    Matrix x = atoms_;
    if (search_.radius) {
      const Vector moved = z.tail(atoms_.size());
      x = unflatten(moved, n, atoms_.cols());
    }
    return {std::move(x), std::move(mass), {}};
  }

  // onto masses ≥ 1e-12 of the largest and atoms in the ball
  Vector projected(Vector z) const {
    const Index n = atoms_.rows(), d = atoms_.cols();
    z.head(n).array() -= z.head(n).maxCoeff();
    z.head(n) = z.head(n).cwiseMax(std::log(1e-12));
    if (search_.radius)
      for (Index i = 0; i < n; ++i) {
        auto atom = z.segment(n + i * d, d);
        atom *= std::min(1.0, *search_.radius / atom.norm());
      }
    return z;
  }

  double operator()(const Vector& z) const {
    const Measure m = measure(z);
    const MapPtr<double> f =
        weighted<double>(std::make_unique<MultiHeadAttention<double>>(
                             weights_, options_on(m, options_)),
                         m.mass);
    double value = norm(*f->linearize(weighted_tokens(m.x, m.mass)));
    if (search_.splitting)
      value =
          std::max(value, norm(*fixed_measure_map<double>(weights_, options_, m)
                                    ->linearize(m.x)));
    return value;
  }

  Vector gradient(const Vector& z) const {
    constexpr double h = 1e-6;
    Vector g(z.size());
    for (Index k = 0; k < z.size(); ++k) {
      Vector up = z, down = z;
      const double step = h * std::max(1.0, std::abs(z[k]));
      up[k] += step;
      down[k] -= step;
      g[k] = ((*this)(up) - (*this)(down)) / (2 * step);
    }
    return g;
  }

 private:
  static double norm(const LinearOperator<double>& a) {
    return dense_norm(materialize(a)).value;
  }

  const AttentionWeights& weights_;
  AttentionOptions options_;
  const WorstMeasureOptions& search_;
  Matrix atoms_;
};

struct Climb {
  Vector z;
  double value = 0.0, start = 0.0;
  Index evaluations = 0;
};

// z ← P(z + α g), α from the last two gradients [BarzilaiBorwein88], halved
// until the step gains what the slope promises, a little of it at least.
Climb climb(const Landscape& f, Vector z, const WorstMeasureOptions& o) {
  Climb c{.z = f.projected(std::move(z))};
  c.value = c.start = f(c.z);
  Vector g = f.gradient(c.z);
  c.evaluations = 1 + 2 * g.size();
  double alpha = 1.0 / std::max(g.norm(), 1e-12);
  double ten_steps_ago = c.value;
  for (int step = 1; step <= o.max_steps; ++step) {
    bool gained = false;
    for (int halving = 0; halving < 40 && !gained; ++halving) {
      const Vector next = f.projected(c.z + alpha * g);
      const Vector s = next - c.z;
      const double value = f(next);
      ++c.evaluations;
      gained = value > c.value && value >= c.value + 1e-4 * g.dot(s);
      if (!gained) {
        alpha /= 4;
        continue;
      }
      const Vector after = f.gradient(next);
      c.evaluations += 2 * g.size();
      const double bend = std::abs(s.dot(after - g));
      alpha = std::clamp(bend > 0 ? s.squaredNorm() / bend : 10 * alpha, 1e-10,
                         1e10);
      c.z = next;
      c.value = value;
      g = after;
    }
    if (!gained) break;
    if (step % 10 == 0) {
      if (c.value <= ten_steps_ago * (1 + o.tolerance)) break;
      ten_steps_ago = c.value;
    }
  }
  return c;
}

}  // namespace

WorstMeasure worst_measure(const AttentionWeights& weights,
                           const AttentionOptions& options,
                           const Measure& start,
                           const WorstMeasureOptions& search) {
  const Index n = start.n(), d = start.x.cols();
  require(!start.masked(),
          "worst_measure: masses are optimised without a mask only");
  require(n * d <= most_atom_numbers,
          "worst_measure: {} atoms of {} numbers; it takes few atoms, n*d <= "
          "{}",
          n, d, most_atom_numbers);
  require(search.restarts >= 0, "worst_measure: {} restarts", search.restarts);
  if (search.radius) {
    require(std::isfinite(*search.radius) && *search.radius > 0.0,
            "worst_measure: a radius of {}; a radius is positive",
            *search.radius);
    for (Index i = 0; i < n; ++i)
      require(start.x.row(i).norm() <= *search.radius * (1 + 1e-12),
              "worst_measure: token {} has norm {}, outside the ball of radius "
              "{}",
              i, start.x.row(i).norm(), *search.radius);
  }

  const Landscape f(weights, options, search, start);
  std::vector<Climb> climbs(1 + search.restarts);
  parallel_for(1 + search.restarts, search.threads, [&](Index r) {
    Measure from = start;
    if (r > 0) {
      const Rng rng = Rng(search.seed).split(static_cast<std::uint64_t>(r));
      // logarithms of masses spread over several units: unequal ones
      from.mass = (3.0 * gaussian(n, 1, rng.split(0))).array().exp();
      if (search.radius) {
        from.x = gaussian(n, d, rng.split(1));
        from.x.rowwise().normalize();
        from.x *= *search.radius;
      }
    }
    climbs[r] = climb(f, f.coordinates(from), search);
  });

  WorstMeasure worst{.start = climbs.front().start};
  for (const Climb& c : climbs) {
    worst.evaluations += c.evaluations;
    worst.found.push_back(c.value);
    if (c.value > worst.value) {
      worst.value = c.value;
      const Measure m = f.measure(c.z);
      worst.measure = make_measure(m.x, m.mass);
    }
  }
  return worst;
}

}  // namespace lipscope
