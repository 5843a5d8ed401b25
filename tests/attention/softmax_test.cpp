#include "lipscope/attention/softmax.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/shared_files.h"

namespace lipscope {
namespace softmax_test {

TEST(SoftmaxRows, IsTheFormulaWorkedByHand) {
  const Matrix s = (Matrix(2, 2) << 0, std::log(3.0), 5, 5).finished();
  const Matrix p = softmax_rows(s, Mask::none);
  EXPECT_NEAR(p(0, 0), 0.25, 1e-15);
  EXPECT_NEAR(p(0, 1), 0.75, 1e-15);
  EXPECT_DOUBLE_EQ(p(1, 0), 0.5);
}

TEST(SoftmaxRows, HiddenEntriesAreExactlyZero) {
  const MatrixOf<float> p = softmax_rows<float>(
      MatrixOf<float>::Constant(9, 9, -80.0f), Mask::causal);
  for (Index i = 0; i < 9; ++i)
    for (Index j = 0; j < 9; ++j)
      EXPECT_EQ(p(i, j), j <= i ? 1.0f / static_cast<float>(i + 1) : 0.0f);
}

TEST(SoftmaxRows, DoesNotOverflow) {
  const Matrix p = softmax_rows<double>(
      (Matrix(1, 3) << 1e300, 1e300, -1e300).finished(), Mask::none);
  EXPECT_EQ(p(0, 0), 0.5);
  EXPECT_LT(p(0, 2), 1e-300);
}

// Scores and attention weights of GPT-2's 144 heads for five prompts, in f32,
// as another program printed them.
TEST(SoftmaxRows, AreTheAttentionWeightsOfGpt2) {
  const auto shared = test::shared_folder();
  if (!shared) GTEST_SKIP() << "no shared files";
  int heads = 0;
  for (int i = 0; i < 5; ++i) {
    std::ifstream file(*shared / ("data/gpt2_reference_attention/ex" +
                                  std::to_string(i) + ".json"));
    const nlohmann::json all = nlohmann::json::parse(file)["attn"];
    for (const auto& [name, head] : all.items()) {
      const auto matrix = [&](const char* what) {
        const Index n = static_cast<Index>(head[what].size());
        Matrix m(n, n);
        for (Index r = 0; r < n; ++r)
          for (Index c = 0; c < n; ++c)
            m(r, c) = head[what][r][c].is_null()
                          ? 0.0
                          : head[what][r][c].template get<double>();
        return m;
      };
      const Matrix p = softmax_rows(matrix("scaled"), Mask::causal);
      EXPECT_LT((p - matrix("softmax")).cwiseAbs().maxCoeff(), 1e-6) << name;
      ++heads;
    }
  }
  EXPECT_EQ(heads, 5 * 144);
}

TEST(SoftmaxDerivative, IsDiagMinusOuterProduct) {
  const Matrix p = (Matrix(1, 3) << 0.2, 0.3, 0.5).finished();
  const Matrix t = (Matrix(1, 3) << 1, -2, 4).finished();
  // ⟨p, t⟩ = 0.2 − 0.6 + 2 = 1.6
  const Matrix expected =
      (Matrix(1, 3) << 0.2 * -0.6, 0.3 * -3.6, 0.5 * 2.4).finished();
  EXPECT_LT((softmax_derivative(p, t) - expected).norm(), 1e-15);
}

}  // namespace softmax_test
}  // namespace lipscope
