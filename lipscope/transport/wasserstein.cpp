#include "lipscope/transport/wasserstein.h"

#include <lemon/network_simplex.h>
#include <lemon/smart_graph.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "lipscope/core/errors.h"

namespace lipscope {
namespace {

using Long = long double;
// Potentials are as large as the largest costs, and what they must tell apart
// may be 10²⁰ times smaller: they need more digits than the costs.
#ifdef __SIZEOF_FLOAT128__
__extension__ typedef __float128 Quad;
constexpr Long quad_unit = 0x1p-113L;
#else
using Quad = long double;
constexpr Long quad_unit = std::numeric_limits<Long>::epsilon() / 2;
#endif

using Graph = lemon::SmartDigraph;
using Integer = std::int64_t;

// Masses as integers: multiples of a power of two that makes their sum about
// 2⁶⁰. No division: masses that are multiples of 2⁻⁵² stay what they are.
struct Units {
  std::vector<Integer> mass;
  Integer sum = 0;
};

Units mass_units(const char* which, const Vector& mass, int shift) {
  Units units;
  for (const double m : mass) {
    require(std::isfinite(m) && m > 0.0,
            "wasserstein2: a mass of {} is {}; masses are positive", which, m);
    units.mass.push_back(std::llrint(std::ldexp(m, shift)));
    require(units.mass.back() > 0,
            "wasserstein2: a mass of {} is {}, which is less than 2^-60 of the "
            "whole",
            which, m);
    units.sum += units.mass.back();
  }
  return units;
}

// the power of two that takes `sum` to (2⁵⁹, 2⁶⁰]
int shift_of(double sum) {
  int exponent = 0;
  std::frexp(sum, &exponent);
  return 60 - exponent;
}

// [n×m], row by row
struct Costs {
  Index n, m;
  std::vector<Long> c;

  Long operator()(Index i, Index j) const { return c[i * m + j]; }
};

Costs squared_distances(const Matrix& x, const Matrix& y) {
  Costs costs{x.rows(), y.rows(), {}};
  costs.c.reserve(costs.n * costs.m);
  for (Index i = 0; i < costs.n; ++i)
    for (Index j = 0; j < costs.m; ++j) {
      Long sum = 0;
      for (Index k = 0; k < x.cols(); ++k) {
        const Long gap = static_cast<Long>(x(i, k)) - y(j, k);
        sum += gap * gap;
      }
      costs.c.push_back(sum);
    }
  return costs;
}

// Feasible potentials, and what is left of the costs.
class Dual {
 public:
  explicit Dual(const Costs& c) : c_(c), u_(c.n, 0), v_(c.m, 0) { tighten(); }

  void add(const std::vector<Long>& du) {
    for (Index i = 0; i < c_.n; ++i) u_[i] += du[i];
    tighten();
  }

  // c − u − v ≥ 0
  Long reduced(Index i, Index j) const {
    return std::max<Long>(0, static_cast<Long>(c_(i, j) - u_[i] - v_[j]));
  }

  // Each potential is off by a rounding or two of itself, and lowering all of
  // them by four of the largest makes them feasible in exact arithmetic.
  Long allowance() const {
    Long size = 0;
    for (const std::vector<Quad>* potential : {&u_, &v_})
      for (const Quad p : *potential)
        size = std::max(size, std::abs(static_cast<Long>(p)));
    return 8 * quad_unit * size;
  }

 private:
  void tighten() {
    constexpr Long infinite = std::numeric_limits<Long>::infinity();
    std::fill(v_.begin(), v_.end(), Quad{infinite});
    for (Index i = 0; i < c_.n; ++i)
      for (Index j = 0; j < c_.m; ++j)
        v_[j] = std::min<Quad>(v_[j], c_(i, j) - u_[i]);
    for (Index i = 0; i < c_.n; ++i) {
      u_[i] = infinite;
      for (Index j = 0; j < c_.m; ++j)
        u_[i] = std::min<Quad>(u_[i], c_(i, j) - v_[j]);
    }
  }

  const Costs& c_;
  std::vector<Quad> u_, v_;
};

// The flow between two sets of nodes, every one joined to every other.
class Network {
 public:
  Network(const Units& a, const Units& b)
      : n_(static_cast<Index>(a.mass.size())),
        m_(static_cast<Index>(b.mass.size())),
        sum_(a.sum),
        supply_(graph_),
        cost_(graph_) {
    graph_.reserveNode(n_ + m_);
    graph_.reserveArc(n_ * m_);
    for (const Integer mass : a.mass) supply_[graph_.addNode()] = mass;
    for (const Integer mass : b.mass) supply_[graph_.addNode()] = -mass;
    for (Index i = 0; i < n_; ++i)
      for (Index j = 0; j < m_; ++j) graph_.addArc(node(i), node(n_ + j));
  }

  struct Solution {
    std::vector<Shipment> plan;
    std::vector<Long> potential;  // of the n sources
  };

  // Optimal for costs min(c, cap), rounded to integers.
  Solution solve(const Dual& dual, Long cap) {
    // potentials reach (n + m)·cost, and sums of two of them must fit
    const Long largest = 0x1p61L / static_cast<Long>(n_ + m_ + 1);
    const Long scale = largest / cap;
    for (Index i = 0; i < n_; ++i)
      for (Index j = 0; j < m_; ++j)
        cost_[arc(i, j)] =
            std::llrint(std::min(dual.reduced(i, j), cap) * scale);
    Simplex simplex(graph_);
    simplex.supplyMap(supply_).costMap(cost_);
    if (simplex.run() != Simplex::OPTIMAL)
      throw RunError("wasserstein2: the network simplex found no plan");

    Solution s;
    for (Index i = 0; i < n_; ++i) {
      // LEMON's reduced cost is c + p_i − p_j
      s.potential.push_back(-static_cast<Long>(simplex.potential(node(i))) /
                            scale);
      for (Index j = 0; j < m_; ++j)
        if (const Integer flow = simplex.flow(arc(i, j)); flow > 0)
          s.plan.push_back(
              {i, j, static_cast<double>(flow) / static_cast<double>(sum_)});
    }
    return s;
  }

 private:
  using Simplex = lemon::NetworkSimplex<Graph, Integer, Integer>;

  static Graph::Node node(Index i) {
    return Graph::nodeFromId(static_cast<int>(i));
  }
  Graph::Arc arc(Index i, Index j) const {
    return Graph::arcFromId(static_cast<int>(i * m_ + j));
  }

  Index n_, m_;
  Integer sum_;
  Graph graph_;
  Graph::NodeMap<Integer> supply_;
  Graph::ArcMap<Integer> cost_;
};

// Σ π_ij (what i, j costs)
template <class Cost>
Long total(const std::vector<Shipment>& plan, Cost cost) {
  Long sum = 0;
  for (const Shipment& s : plan) sum += s.mass * cost(s.from, s.to);
  return sum;
}

Long largest_cost(const Costs& c, const Dual& dual) {
  Long largest = 0;
  for (Index i = 0; i < c.n; ++i)
    for (Index j = 0; j < c.m; ++j)
      largest = std::max(largest, dual.reduced(i, j));
  return largest;
}

}  // namespace

Transport wasserstein2(const Matrix& x, const Vector& a, const Matrix& y,
                       const Vector& b, const TransportOptions& options) {
  require(x.rows() > 0 && y.rows() > 0, "wasserstein2: {} and {} points",
          x.rows(), y.rows());
  require(x.cols() == y.cols(), "wasserstein2: points of {} and {} numbers",
          x.cols(), y.cols());
  require(a.size() == x.rows() && b.size() == y.rows(),
          "wasserstein2: {} and {} masses for {} and {} points", a.size(),
          b.size(), x.rows(), y.rows());
  require(x.allFinite() && y.allFinite(),
          "wasserstein2: the points are not all finite");
  require(x.rows() <= (Index{1} << 26) / y.rows(),
          "wasserstein2: {} times {} points are more than 2^26 pairs", x.rows(),
          y.rows());

  const int shift = shift_of(a.sum());
  const Units from = mass_units("the first", a, shift);
  Units to = mass_units("the second", b, shift);
  // the largest of the second gives way to what rounding made of the sums
  const Integer rest_of_mass = from.sum - to.sum;
  require(std::abs(rest_of_mass) <= from.sum / 1'000'000'000,
          "wasserstein2: masses of sum {} and {}", a.sum(), b.sum());
  *std::max_element(to.mass.begin(), to.mass.end()) += rest_of_mass;
  const Long least = static_cast<Long>(std::min(
                         *std::min_element(from.mass.begin(), from.mass.end()),
                         *std::min_element(to.mass.begin(), to.mass.end()))) /
                     static_cast<Long>(from.sum);
  const Costs costs = squared_distances(x, y);
  Network network(from, to);
  Dual dual(costs);

  Transport best;
  Long primal = std::numeric_limits<Long>::infinity(), below = 0;
  Long cap = largest_cost(costs, dual);
  for (int round = 0; round <= options.refinements; ++round) {
    if (!(cap > 0)) cap = 1;  // every plan costs the same
    const Network::Solution s = network.solve(dual, cap);
    const Long cost = total(s.plan, costs);
    if (cost < primal) {
      primal = cost;
      best.plan = s.plan;
    }
    // what the plan costs beyond the dual value
    const auto rest_of = [&] {
      const Long rest =
          total(s.plan, [&](Index i, Index j) { return dual.reduced(i, j); });
      below = std::max(below, cost - rest - dual.allowance());
      return rest;
    };
    const auto solved = [&] {
      return primal - below <= static_cast<Long>(options.gap) * primal;
    };
    rest_of();
    if (solved()) break;
    dual.add(s.potential);
    const Long rest = rest_of();
    if (solved()) break;
    // A best plan costs no more than that in reduced costs: those far above
    // rest/mass may count as less.
    cap = std::min(largest_cost(costs, dual), 16 * rest / least);
  }
  best.value = static_cast<double>(std::sqrt(primal));
  best.below = static_cast<double>(std::sqrt(below));
  best.relative_gap =
      primal > 0 ? static_cast<double>((primal - below) / primal) : 0.0;
  return best;
}

}  // namespace lipscope
