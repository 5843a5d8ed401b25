#include "lipscope/core/bf16_pairs.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "lipscope/core/gemm.h"
#include "lipscope/core/rng.h"

namespace lipscope {
namespace bf16_pairs_test {

constexpr float infinity = std::numeric_limits<float>::infinity();

MatrixOf<float> numbers(Index rows, Index cols, int seed) {
  return gaussian(rows, cols, Rng(seed)).cast<float>();
}

// the nearest number of eight bits, to even
double rounded(float x) {
  int exponent = 0;
  const double fraction = std::frexp(static_cast<double>(x), &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, 8)), exponent - 8);
}
Matrix rounded(const MatrixOf<float>& m) {
  return m.unaryExpr([](float x) { return rounded(x); }).cast<double>();
}

struct Aligned {
  std::vector<std::uint16_t> memory;
  std::uint16_t* data;
  explicit Aligned(Index size) : memory(size + 32) {
    const auto address = std::bit_cast<std::uintptr_t>(memory.data());
    data = memory.data() + ((address + 63) / 64 * 64 - address) / 2;
  }
};

// the left factor is given transposed, the right factor is
class Pairs : public testing::TestWithParam<std::tuple<bool, bool>> {
 protected:
  void SetUp() override {
    if (!bf16_pairs::available()) GTEST_SKIP() << "this CPU has no such pairs";
  }

  static MatrixOf<float> turned(const MatrixOf<float>& m, bool t) {
    return t ? MatrixOf<float>(m.transpose()) : m;
  }

  // a b for what stands in memory as GetParam() says
  static MatrixOf<float> times(const MatrixOf<float>& a,
                               const MatrixOf<float>& b) {
    const auto [ta, tb] = GetParam();
    const MatrixOf<float> left = turned(a, ta), right = turned(b, tb);
    Aligned packed(bf16_pairs::packed_size(b.rows(), b.cols()));
    bf16_pairs::pack({right.data(), right.cols(), tb}, b.rows(), b.cols(),
                     packed.data);
    MatrixOf<float> c(a.rows(), b.cols());
    bf16_pairs::multiply({left.data(), left.cols(), ta},
                         {packed.data, b.rows(), b.cols()}, 0, b.cols(),
                         c.data(), c.cols(), c.rows(), false);
    return c;
  }
};

TEST_P(Pairs, AreProductsOfRoundedFactors) {
  const auto [ta, tb] = GetParam();
  for (const auto& [m, n, k] : {std::tuple<Index, Index, Index>{1, 1, 1},
                                {8, 48, 32},
                                {7, 17, 2},
                                {17, 33, 31},
                                {50, 15, 257},
                                {130, 49, 64},
                                {33, 70, 600}}) {
    const MatrixOf<float> a = numbers(m, k, 1), b = numbers(k, n, 2);
    const Matrix exact = rounded(a) * rounded(b);
    // a sum of k numbers is k roundings off at most, each by 2⁻²⁴ of the sum of
    // magnitudes at most
    const Matrix off = static_cast<double>(k + 2) * 0x1p-24 *
                       (rounded(a).cwiseAbs() * rounded(b).cwiseAbs());
    const MatrixOf<float> once = times(a, b);
    ASSERT_TRUE(
        ((once.cast<double>() - exact).cwiseAbs().array() <= off.array()).all())
        << m << 'x' << k << 'x' << n;

    // columns from the 16th on, added to what is there, inside a larger matrix
    // whose other numbers stay as they are
    if (n <= 16) continue;
    const MatrixOf<float> left = turned(a, ta), right = turned(b, tb);
    Aligned packed(bf16_pairs::packed_size(k, n));
    bf16_pairs::pack({right.data(), right.cols(), tb}, k, n, packed.data);
    MatrixOf<float> c = MatrixOf<float>::Constant(m + 2, n - 16 + 3, 7);
    c.block(1, 1, m, n - 16) = once.rightCols(n - 16);
    bf16_pairs::multiply({left.data(), left.cols(), ta}, {packed.data, k, n},
                         16, n - 16, c.data() + c.cols() + 1, c.cols(), m,
                         true);
    ASSERT_TRUE(
        ((c.block(1, 1, m, n - 16).cast<double>() - 2 * exact.rightCols(n - 16))
             .cwiseAbs()
             .array() <= 3 * off.rightCols(n - 16).array())
            .all());
    c.block(1, 1, m, n - 16).setConstant(7);
    ASSERT_EQ(c, MatrixOf<float>::Constant(m + 2, n - 16 + 3, 7));
  }
}

TEST_P(Pairs, RoundToNearestEven) {
  const MatrixOf<float> one = MatrixOf<float>::Ones(1, 1);
  const auto read = [&](float x) {
    const float left = times(MatrixOf<float>::Constant(1, 1, x), one)(0, 0);
    const float right = times(one, MatrixOf<float>::Constant(1, 1, x))(0, 0);
    EXPECT_TRUE(left == right || (std::isnan(left) && std::isnan(right)));
    return left;
  };
  EXPECT_EQ(read(1 + 0x1p-8f), 1.0f);
  EXPECT_EQ(read(1 + 0x1.8p-8f), 1 + 0x1p-7f);
  EXPECT_EQ(read(1 + 3 * 0x1p-8f), 1 + 0x1p-6f);
  EXPECT_EQ(read(-1 - 3 * 0x1p-8f), -1 - 0x1p-6f);
  EXPECT_EQ(read(std::numeric_limits<float>::max()), infinity);
  EXPECT_EQ(read(-infinity), -infinity);
  EXPECT_TRUE(std::isnan(read(std::numeric_limits<float>::quiet_NaN())));
  // all bits of the fraction are set: rounded as a number it would be zero
  EXPECT_TRUE(std::isnan(read(std::bit_cast<float>(0x7fffffffu))));
}

TEST_P(Pairs, NeverHideWhatIsNotFinite) {
  for (const float bad : {infinity, std::numeric_limits<float>::quiet_NaN()}) {
    MatrixOf<float> a = numbers(20, 20, 2);
    a(3, 7) = bad;
    const MatrixOf<float> c = times(a, numbers(20, 20, 1));
    EXPECT_FALSE(c.row(3).array().isFinite().any());
    EXPECT_TRUE(c.row(4).allFinite());
  }
}

INSTANTIATE_TEST_SUITE_P(, Pairs,
                         testing::Combine(testing::Bool(), testing::Bool()));

// Through gemm.h: who asks for eight bits gets them where the CPU has pairs and
// no tiles, and all bits otherwise; products_in_words says which.
TEST(Precision, SaysWhatProductsAreMadeOf) {
  const MatrixOf<float> a = MatrixOf<float>::Constant(64, 64, 1 + 0x1p-12f);
  const MatrixOf<float> eye = MatrixOf<float>::Identity(64, 64);
  const auto product_by = [&](Precision precision) {
    const RightFactor<float> right(as_is(eye), precision);
    const MatrixOf<float> prepared = product(as_is(a), right, 1);
    MatrixOf<float> cut(64, 64);
    product_into<float>(as_is(a), as_is(eye), view(cut), 1, precision);
    EXPECT_EQ(prepared, cut);
    return prepared;
  };
  EXPECT_EQ(product_by(Precision::full), a);
  const std::string words = products_in_words(Precision::bf16);
  const bool shorter = words == "bf16 pairs" || words == "bf16 tiles, one part";
  EXPECT_EQ(shorter, words != "f32") << words;
  EXPECT_EQ(product_by(Precision::bf16),
            shorter ? MatrixOf<float>::Ones(64, 64) : a);
  const WithoutTiles without;
  for (const Precision precision : all_precisions) {
    EXPECT_EQ(products_in_words(precision), "f32");
    EXPECT_EQ(product_by(precision), a);
  }
}

}  // namespace bf16_pairs_test
}  // namespace lipscope
