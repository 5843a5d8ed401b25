// Sigmoid attention: the values that the theory gives by hand.

#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/attention/dense.h"
#include "tests/attention/one_by_one.h"

namespace lipscope {
namespace sigmoid_test {

using test::column;
using test::jacobian;
using test::one_by_one;

TEST(Sigmoid, WithoutQueriesAddsEveryTokenByItsShare) {
  // σ(−log n) = 1/(1 + n) for each token seen, with the full n: J = 11ᵀ/(1+n)
  const Matrix J = jacobian(one_by_one(0, 1, 3), {.kind = Kind::sigmoid},
                            column({1, -2, 5}));
  EXPECT_LT((J - Matrix::Constant(3, 3, 3.0 / 4)).norm(), 1e-15);
  const Matrix masked = jacobian(one_by_one(0, 1, 3),
                                 {.kind = Kind::sigmoid, .mask = Mask::causal},
                                 column({1, -2, 5}));
  EXPECT_NEAR(masked(0, 0), 3.0 / 4, 1e-15);
  EXPECT_EQ(masked(0, 1), 0.0);
}

TEST(Sigmoid, KeyAndValueBiasesAct) {
  AttentionWeights w = one_by_one(1, 1, 1);
  const Matrix x = column({0.5, -1});
  const Matrix without = jacobian(w, {.kind = Kind::sigmoid}, x);
  w.value_bias = Vector::Ones(1);
  EXPECT_GT((jacobian(w, {.kind = Kind::sigmoid}, x) - without).norm(), 1e-2);
}

TEST(Sigmoid, HasItsSlopeWhereItIsAllButOne) {
  // W_V = 0, v = 1, one token 5: J = 2·5 σ'(25), and 1 − σ(25) has five digits
  AttentionWeights w = one_by_one(1, 1, 0);
  w.value_bias = Vector::Ones(1);
  const double small = std::exp(-25.0);
  const double exact = 10 * small / ((1 + small) * (1 + small));
  const AttentionOptions options{.kind = Kind::sigmoid};
  EXPECT_NEAR(dense_jacobian(w, options, column({5}))(0, 0) / exact, 1.0,
              1e-14);
}

}  // namespace sigmoid_test
}  // namespace lipscope
