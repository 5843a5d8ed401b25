// measure_norm of operators that are given themselves, of any shape.

#include <gtest/gtest.h>

#include "lipscope/spectral/estimate.h"
#include "tests/spectral/known_operators.h"

namespace lipscope {
namespace operator_norm_test {

using test::DenseOperator;
using test::with_singular_values;

const MeasureOptions iterated{.enclose = 1.1, .dense_limit = 0};

Matrix matrix(Index rows, Index cols) {
  Vector s = Vector::LinSpaced(std::min(rows, cols), 0.9, 0.1);
  s[0] = 1.0;
  return with_singular_values(rows, cols, s);
}

void expect_enclosed(const Matrix& a, const Measurement& m) {
  EXPECT_TRUE(m.converged);
  EXPECT_NEAR(m.lower, 1.0, 1e-9);
  ASSERT_TRUE(m.upper_whp.has_value());
  EXPECT_GE(*m.upper_whp, 1.0);
  EXPECT_LE(*m.upper_whp, 1.1 * m.lower);
  EXPECT_NEAR((a * m.direction).norm(), m.lower, 1e-12);
  ASSERT_EQ(m.image.size(), a.rows());
  EXPECT_LE((a * m.direction - m.image).norm(), 1e-12);
}

TEST(MeasureNormOfOperator, EnclosesTallAndWideOnesInBothPrecisions) {
  for (const auto& [rows, cols] :
       {std::pair<Index, Index>(90, 60), {40, 110}}) {
    const Matrix a = matrix(rows, cols);
    const DenseOperator<double> in_f64(a);
    const DenseOperator<float> in_f32(a.cast<float>());
    expect_enclosed(a, measure_norm(in_f64, iterated));
    expect_enclosed(a, measure_norm(in_f32, in_f64, iterated));
  }
}

TEST(MeasureNormOfOperator, FormsWhatIsSmallAndNothingThatIsTall) {
  MeasureOptions options;
  options.dense_limit = 8;
  const Matrix small = matrix(20, 8), tall = matrix(40, 8);
  const Measurement formed =
      measure_norm(DenseOperator<double>(small), options);
  EXPECT_EQ(formed.lower_by, NormMethod::dense_gram);
  EXPECT_GE(formed.upper.value(), 1.0);
  // 40 rows of 8 are more than 4 · 8² entries
  const Measurement found = measure_norm(DenseOperator<double>(tall), options);
  EXPECT_EQ(found.lower_by, NormMethod::golub_kahan_f64);
  EXPECT_FALSE(found.upper.has_value());
  EXPECT_NEAR(found.lower, 1.0, 1e-9);
}

TEST(MeasureNormOfOperator, StartsNearALikelyDirection) {
  const Matrix a = matrix(300, 200);
  const DenseOperator<double> in_f64(a);
  const DenseOperator<float> in_f32(a.cast<float>());
  MeasureOptions options{.dense_limit = 0};
  const Measurement at_random[] = {measure_norm(in_f64, options),
                                   measure_norm(in_f32, in_f64, options)};
  options.likely = 5 * at_random[0].direction;
  const Measurement near[] = {measure_norm(in_f64, options),
                              measure_norm(in_f32, in_f64, options)};
  for (const int i : {0, 1}) {
    EXPECT_TRUE(near[i].converged);
    EXPECT_NEAR(near[i].lower, 1.0, 1e-9);
    EXPECT_LT(near[i].steps, at_random[i].steps);
    EXPECT_GE(near[i].upper_whp.value(), 1.0);
  }
  options.enclose = 1.1;
  expect_enclosed(a, measure_norm(in_f64, options));
  expect_enclosed(a, measure_norm(in_f32, in_f64, options));
  // a direction of no length is none
  options.enclose = 0.0;
  options.likely = Vector::Zero(200);
  EXPECT_EQ(measure_norm(in_f64, options).direction, at_random[0].direction);
  options.likely = Vector::Ones(199);
  EXPECT_THROW(measure_norm(in_f64, options), std::invalid_argument);
}

TEST(MeasureNormOfOperator, KnowsNoSequences) {
  MeasureOptions options;
  options.sequences = 2;
  EXPECT_THROW(measure_norm(DenseOperator<double>(matrix(4, 4)), options),
               std::invalid_argument);
}

}  // namespace operator_norm_test
}  // namespace lipscope
