#include "lipscope/transport/wasserstein.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/transport/measures.h"

namespace lipscope {
namespace wasserstein_test {

Vector equal(Index n) {
  return Vector::Constant(n, 1.0 / static_cast<double>(n));
}

// all plans between equal masses are mixtures of permutations [Birkhoff]
double brute_force(const Matrix& x, const Matrix& y) {
  std::vector<Index> to(x.rows());
  std::iota(to.begin(), to.end(), Index{0});
  double best = INFINITY;
  do {
    best = std::min(best, (x - y(to, Eigen::all)).squaredNorm());
  } while (std::next_permutation(to.begin(), to.end()));
  return std::sqrt(best / static_cast<double>(x.rows()));
}

// On the line the best plan keeps the order: both sorted, the mass of each is
// used up from left to right.
double on_the_line(Vector x, Vector a, Vector y, Vector b) {
  const auto sorted = [](Vector& at, Vector& mass) {
    std::vector<Index> order(at.size());
    std::iota(order.begin(), order.end(), Index{0});
    std::sort(order.begin(), order.end(),
              [&](Index i, Index j) { return at[i] < at[j]; });
    at = Vector(at(order));
    mass = Vector(mass(order));
  };
  sorted(x, a);
  sorted(y, b);
  double cost = 0.0;
  for (Index i = 0, j = 0; i < x.size() && j < y.size();) {
    const double mass = std::min(a[i], b[j]);
    cost += mass * (x[i] - y[j]) * (x[i] - y[j]);
    a[i] -= mass;
    b[j] -= mass;
    if (a[i] <= b[j])
      ++i;
    else
      ++j;
  }
  return std::sqrt(cost);
}

void expect_marginals(const Transport& t, const Vector& a, const Vector& b) {
  Vector from = Vector::Zero(a.size()), to = Vector::Zero(b.size());
  for (const Shipment& s : t.plan) {
    EXPECT_GT(s.mass, 0.0);
    from[s.from] += s.mass;
    to[s.to] += s.mass;
  }
  EXPECT_LT((from - a).cwiseAbs().maxCoeff(), 1e-15);
  EXPECT_LT((to - b).cwiseAbs().maxCoeff(), 1e-15);
}

TEST(Wasserstein, IsTheBestOfAllPermutations) {
  for (Index n = 1; n <= 7; ++n)
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      const Matrix x = gaussian(n, 3, Rng(seed).split(0));
      const Matrix y = gaussian(n, 3, Rng(seed).split(1));
      const Transport t = wasserstein2(x, equal(n), y, equal(n));
      EXPECT_NEAR(t.value, brute_force(x, y), 1e-13) << n << " " << seed;
      EXPECT_LE(t.below, t.value);
      EXPECT_LE(t.relative_gap, 1e-12);
      expect_marginals(t, equal(n), equal(n));
    }
}

TEST(Wasserstein, KeepsTheOrderOnTheLine) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Matrix x = gaussian(9, 1, Rng(seed).split(0));
    const Matrix y = 3.0 * gaussian(13, 1, Rng(seed).split(1));
    const Vector a = test::random_masses(9, seed);
    const Vector b = test::random_masses(13, seed + 100);
    const Transport t = wasserstein2(x, a, y, b);
    EXPECT_NEAR(t.value, on_the_line(x.col(0), a, y.col(0), b), 1e-13);
    EXPECT_LE(t.relative_gap, 1e-12);
    expect_marginals(t, a, b);
  }
}

TEST(Wasserstein, OfATranslationIsItsLength) {
  for (const double length : {1e-9, 1e-5, 1.0, 1e4}) {
    const Matrix x = gaussian(20, 4, Rng(1));
    const Vector w = test::random_masses(20, 2);
    const Vector t = length * random_direction(4, Rng(3));
    const Transport moved = wasserstein2(x, w, x.rowwise() + t.transpose(), w);
    // the moved points are rounded to 2⁻⁵³ of their size
    EXPECT_NEAR(moved.value, length, 1e-15 + 1e-12 * length);
    EXPECT_LE(moved.relative_gap, 1e-9) << length;
  }
}

TEST(Wasserstein, IsAMetric) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Matrix x = gaussian(6, 2, Rng(seed).split(0));
    const Matrix y = gaussian(8, 2, Rng(seed).split(1));
    const Matrix z = gaussian(5, 2, Rng(seed).split(2));
    const Vector a = test::random_masses(6, seed);
    const Vector b = test::random_masses(8, seed + 30);
    const Vector c = test::random_masses(5, seed + 60);
    const double xy = wasserstein2(x, a, y, b).value;
    const double yz = wasserstein2(y, b, z, c).value;
    const double xz = wasserstein2(x, a, z, c).value;
    EXPECT_EQ(wasserstein2(x, a, x, a).value, 0.0);
    EXPECT_NEAR(wasserstein2(y, b, x, a).value, xy, 1e-14);
    EXPECT_LE(xz, xy + yz);
    EXPECT_GT(xy, 0.0);
  }
}

TEST(Wasserstein, DoesNotNoticeHowMassIsListed) {
  const Matrix x = gaussian(4, 2, Rng(5)), y = gaussian(3, 2, Rng(6));
  const Vector a = test::random_masses(4, 7), b = test::random_masses(3, 8);
  const std::vector<Index> twice{0, 0, 1, 2, 2, 3};
  Vector cut = a(twice);
  for (const Index i : {0, 3}) {
    cut[i] *= 0.3;
    cut[i + 1] *= 0.7;
  }
  EXPECT_NEAR(wasserstein2(x(twice, Eigen::all), cut, y, b).value,
              wasserstein2(x, a, y, b).value, 1e-14);
}

TEST(Wasserstein, ClosesTheGapOnHundredsOfPoints) {
  for (const Index n : {50, 150, 300}) {
    const Matrix x = gaussian(n, 5, Rng(n).split(0));
    const Matrix y = gaussian(n - 7, 5, Rng(n).split(1));
    const Vector a = test::random_masses(n, 1),
                 b = test::random_masses(n - 7, 2);
    const Transport t = wasserstein2(x, a, y, b);
    EXPECT_LE(t.relative_gap, 1e-9);
    EXPECT_GE(t.relative_gap, 0.0);
    EXPECT_GT(t.value, 0.1);
    expect_marginals(t, a, b);
  }
}

TEST(Wasserstein, ClosesTheGapWhereDistancesAreTinyBesideTheExtent) {
  // Pairs of points a hair apart and far from all others: between two clusters
  // 1e3 apart everything that matters happens at 1e-6, where integer costs in
  // units of the largest are far too coarse to tell the plans apart.
  const Index n = 40;
  Matrix x = 1e-6 * gaussian(n, 2, Rng(1)), y = 1e-6 * gaussian(n, 2, Rng(2));
  for (Index i = 0; i < n; ++i) {
    const double side = i % 2 == 0 ? 0.0 : 1024.0;
    x(i, 0) += side;
    y(i, 0) += side;
  }
  const Transport t = wasserstein2(x, equal(n), y, equal(n));
  EXPECT_LE(t.relative_gap, 1e-9);
  EXPECT_LT(t.value, 2e-6);
  // without them it says that it has not solved it
  const Transport coarse =
      wasserstein2(x, equal(n), y, equal(n), {.refinements = 0});
  EXPECT_GT(coarse.relative_gap, 1e-9);
  EXPECT_LE(coarse.below, t.value);
  EXPECT_GE(coarse.value, t.value);
}

TEST(Wasserstein, RefusesWhatIsNoTransportProblem) {
  const Matrix x = Matrix::Zero(2, 2), y = Matrix::Ones(3, 2);
  EXPECT_THROW(wasserstein2(x, equal(3), y, equal(3)), std::invalid_argument);
  EXPECT_THROW(wasserstein2(x, equal(2), Matrix::Ones(3, 1), equal(3)),
               std::invalid_argument);
  EXPECT_THROW(wasserstein2(Matrix(0, 2), Vector(), y, equal(3)),
               std::invalid_argument);
  EXPECT_THROW(wasserstein2(x, Vector{{1.5, -0.5}}, y, equal(3)),
               std::invalid_argument);
  EXPECT_THROW(wasserstein2(x, Vector{{1.0, 1.0}}, y, equal(3)),
               std::invalid_argument);
  EXPECT_THROW(wasserstein2(x, Vector{{1.0, 1e-19}}, y, equal(3)),
               std::invalid_argument);
  EXPECT_THROW(wasserstein2(Matrix::Constant(2, 2, NAN), equal(2), y, equal(3)),
               std::invalid_argument);
}

}  // namespace wasserstein_test
}  // namespace lipscope
