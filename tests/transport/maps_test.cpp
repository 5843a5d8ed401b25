#include <gtest/gtest.h>

#include "lipscope/attention/dense.h"
#include "lipscope/operators/check.h"
#include "lipscope/transport/fixed_measure_map.h"
#include "lipscope/transport/weighted_map.h"
#include "tests/transport/measures.h"

namespace lipscope {
namespace maps_test {

using test::LayerCase;

class MeasureMaps : public testing::TestWithParam<LayerCase> {
 protected:
  const LayerCase& c = GetParam();
  const AttentionWeights weights = test::random_layer(c);
  const Measure mu = test::random_measure(c);
  const AttentionOptions options = options_on(mu, {.kind = c.kind});
  const Matrix z = weighted_tokens(mu.x, mu.mass);
  const MapPtr<double> moving =
      weighted<double>(std::make_unique<MultiHeadAttention<double>>(
                           weights, AttentionOptions(options)),
                       mu.mass);
  const MapPtr<double> held =
      fixed_measure_map<double>(weights, {.kind = c.kind}, mu);

  // Σ_h A_h Cov_i^h V_h, factor 2 and A on the value path for l2, straight from
  // the definition, as it acts on rows
  Matrix split_block(Index i) const {
    const Index k = weights.query_width(), w = weights.value_width();
    const double root = std::sqrt(static_cast<double>(k));
    const Index seen = tokens_seen(mu)[i];
    const bool l2 = c.kind == Kind::l2;
    const Index width = c.output ? weights.output.cols() : weights.heads * w;
    Matrix sum = Matrix::Zero(c.d, width);
    for (Index h = 0; h < weights.heads; ++h) {
      const Matrix wq = weights.query.middleCols(h * k, k);
      const Matrix wk = l2 ? wq : Matrix(weights.key.middleCols(h * k, k));
      const Vector bq = c.biases ? Vector(weights.query_bias.segment(h * k, k))
                                 : Vector(Vector::Zero(k));
      Vector p(seen);
      for (Index j = 0; j < seen; ++j) {
        const Vector q = wq.transpose() * mu.x.row(i).transpose();
        const Vector key = wk.transpose() * mu.x.row(j).transpose();
        const double s =
            l2 ? -(q - key).squaredNorm() / root : (q + bq).dot(key) / root;
        p[j] = mu.mass[j] * std::exp(s);
      }
      p /= p.sum();
      const Matrix x = mu.x.topRows(seen);
      const Eigen::RowVectorXd mean = p.transpose() * x;
      const Matrix cov =
          x.transpose() * p.asDiagonal() * x - mean.transpose() * mean;
      const Matrix a = wq * wk.transpose() / root;
      Matrix value = weights.value.middleCols(h * w, w);
      if (l2) value = 2 * a * value;
      const Matrix block = a * cov * value;
      if (c.output)
        sum += block * weights.output.middleRows(h * w, w);
      else
        sum.middleCols(h * w, w) += block;
    }
    return sum;
  }
};

TEST_P(MeasureMaps, WeightedIsTheDenseJacobianRescaled) {
  Matrix expected = dense_jacobian(weights, options, mu.x);
  const Index d = c.d, e = expected.rows() / c.n;
  for (Index i = 0; i < c.n; ++i)
    for (Index j = 0; j < c.n; ++j)
      expected.block(i * e, j * d, e, d) *= std::sqrt(mu.mass[i] / mu.mass[j]);
  const Matrix found = materialize(*moving->linearize(z));
  EXPECT_LT((found - expected).norm(), 1e-13 * expected.norm()) << c.name();
}

TEST_P(MeasureMaps, HeldHasTheBlocksOfTheClosedForm) {
  const Matrix found = materialize(*held->linearize(mu.x));
  const Index d = c.d, e = found.rows() / c.n;
  Matrix expected = Matrix::Zero(found.rows(), found.cols());
  for (Index i = 0; i < c.n; ++i)
    expected.block(i * e, i * d, e, d) = split_block(i).transpose();
  EXPECT_LT((found - expected).norm(), 1e-12 * expected.norm()) << c.name();
}

TEST_P(MeasureMaps, HaveTheirDerivativesAndAdjoints) {
  for (const MapPtr<double>* f : {&moving, &held}) {
    // held: also away from the tokens of the measure
    const Matrix at = f == &moving ? z : Matrix(1.1 * mu.x);
    const DerivativeCheck check = check_derivative(**f, at, Rng(c.seed));
    EXPECT_LT(check.error, 1e-8) << c.name();
    EXPECT_GT(check.magnitude, 1e-4) << c.name();
    EXPECT_FALSE(check.identical);
    EXPECT_LT(adjoint_defect(*(*f)->linearize(at), Rng(c.seed)), 1e-14);
  }
}

TEST_P(MeasureMaps, HeldAtItsOwnTokensIsAttention) {
  const Matrix y = pushed(weights, {.kind = c.kind}, mu).x;
  EXPECT_LT(((*held)(mu.x) - y).norm(), 1e-13 * y.norm()) << c.name();
}

TEST_P(MeasureMaps, AreTheSameInSinglePrecisionUpToRounding) {
  const MapPtr<float> single =
      fixed_measure_map<float>(weights, {.kind = c.kind}, mu);
  const Matrix y = (*single)(mu.x.cast<float>()).cast<double>();
  EXPECT_LT((y - (*held)(mu.x)).norm(), 1e-5 * y.norm());
  const MapPtr<float> scaled =
      weighted<float>(std::make_unique<MultiHeadAttention<float>>(
                          weights, AttentionOptions(options)),
                      mu.mass);
  EXPECT_LT(((*scaled)(z.cast<float>()).cast<double>() - (*moving)(z)).norm(),
            1e-5 * y.norm());
}

INSTANTIATE_TEST_SUITE_P(Measures, MeasureMaps,
                         testing::ValuesIn(test::measure_cases()));

TEST(FixedMeasureMap, TokensThatAttractThemselvesMostAreNotCountedTwice) {
  // Scores of 10⁴ with oneself and masses that differ by 10¹²: one who looks
  // must have no weight at all, however much it resembles itself.
  const Measure m = make_measure(Matrix{{100.0, 0.0}, {0.0, 100.0}},
                                 Vector{{1e-12, 1 - 1e-12}});
  AttentionWeights w;
  w.query = std::sqrt(2.0) * Matrix::Identity(2, 2);
  w.key = w.value = Matrix::Identity(2, 2);
  const Matrix off = (*fixed_measure_map<double>(w, {}, m))(
      Matrix{{70.0, 70.1}, {300.0, 300.0}});
  EXPECT_NEAR(off(0, 0) + off(0, 1), 100.0, 1e-9);
  EXPECT_NEAR(off(1, 0) + off(1, 1), 100.0, 1e-9);
}

TEST(MeasureMaps, RefuseShapesThatDoNotFit) {
  const LayerCase c{.d = 6};
  const Measure m = test::random_measure(c);
  const AttentionWeights w = test::random_layer(c);
  EXPECT_THROW((*fixed_measure_map<double>(w, {}, m))(Matrix::Zero(4, 6)),
               std::invalid_argument);
  const auto f = weighted<double>(
      std::make_unique<MultiHeadAttention<double>>(w, AttentionOptions{}),
      m.mass);
  EXPECT_THROW((*f)(Matrix::Zero(4, 6)), std::invalid_argument);
  EXPECT_THROW(weighted<double>(std::make_unique<MultiHeadAttention<double>>(
                                    w, AttentionOptions{}),
                                Vector::Zero(5)),
               std::invalid_argument);
}

}  // namespace maps_test
}  // namespace lipscope
