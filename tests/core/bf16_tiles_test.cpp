#include "lipscope/core/bf16_tiles.h"

#include <gtest/gtest.h>

#include <limits>
#include <tuple>
#include <vector>

#include "lipscope/core/gemm.h"
#include "lipscope/core/rng.h"

namespace lipscope {
namespace bf16_tiles_test {

using bf16_tiles::Parts;

// what a product of parts may be off by, for numbers whose products have this
// sum of magnitudes: what is left out, and the rounding of sums
double slack(Parts parts, Index k, double magnitudes) {
  const double left_out = parts == Parts::one   ? 0x1p-7
                          : parts == Parts::two ? 0x1p-13
                                                : 0x1p-21;
  return (1.01 * left_out + static_cast<double>(6 * k) * 0x1p-24) * magnitudes;
}

MatrixOf<float> numbers(Index rows, Index cols, int seed) {
  return gaussian(rows, cols, Rng(seed)).cast<float>();
}

struct Aligned {
  std::vector<std::uint16_t> memory;
  std::uint16_t* data;
  explicit Aligned(Index size) : memory(size + 32) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    data = memory.data() + ((address + 63) / 64 * 64 - address) / 2;
  }
};

class Tiles : public testing::TestWithParam<std::tuple<Parts, bool, bool>> {
 protected:
  void SetUp() override {
    if (!bf16_tiles::available()) GTEST_SKIP() << "this CPU has no tiles";
  }
};

TEST_P(Tiles, MultiplyMatricesOfAnyShape) {
  const auto [parts, ta, tb] = GetParam();
  for (const auto& [m, n, k] : {std::tuple<Index, Index, Index>{1, 1, 1},
                                {16, 16, 32},
                                {32, 32, 64},
                                {17, 33, 31},
                                {50, 15, 257},
                                {33, 70, 600}}) {
    const MatrixOf<float> a = numbers(ta ? k : m, ta ? m : k, 1);
    const MatrixOf<float> b = numbers(tb ? n : k, tb ? k : n, 2);
    const Matrix wide_a =
        (ta ? MatrixOf<float>(a.transpose()) : a).cast<double>();
    const Matrix wide_b =
        (tb ? MatrixOf<float>(b.transpose()) : b).cast<double>();
    const Matrix exact = wide_a * wide_b;
    const Matrix magnitudes = wide_a.cwiseAbs() * wide_b.cwiseAbs();
    Aligned packed(bf16_tiles::packed_size(k, n, parts));
    bf16_tiles::pack({b.data(), b.cols(), tb}, k, n, parts, packed.data);

    // inside a larger matrix, whose other numbers stay as they are
    MatrixOf<float> c = MatrixOf<float>::Constant(m + 2, n + 3, 7);
    float* at = c.data() + c.cols() + 1;
    bf16_tiles::multiply({a.data(), a.cols(), ta}, {packed.data, k, n, parts},
                         0, n, at, c.cols(), m, false);
    for (Index i = 0; i < m; ++i)
      for (Index j = 0; j < n; ++j)
        ASSERT_LE(std::abs(c(i + 1, j + 1) - exact(i, j)),
                  slack(parts, k, magnitudes(i, j)))
            << m << 'x' << k << 'x' << n << " at " << i << ' ' << j;
    const MatrixOf<float> once = c.block(1, 1, m, n);
    c.block(1, 1, m, n).setConstant(7);
    ASSERT_EQ(c, MatrixOf<float>::Constant(m + 2, n + 3, 7));

    c.block(1, 1, m, n) = once;
    bf16_tiles::multiply({a.data(), a.cols(), ta}, {packed.data, k, n, parts},
                         0, n, at, c.cols(), m, true);
    ASSERT_LE((c.block(1, 1, m, n) - 2 * once).cwiseAbs().maxCoeff(),
              2 * slack(parts, k, magnitudes.maxCoeff()));
  }
}

TEST_P(Tiles, ReadAsManyBitsAsTheySay) {
  const auto [parts, ta, tb] = GetParam();
  // 1 + 2⁻¹⁰ + 2⁻²⁰ times one: the last bit is in the third part
  const float x = 1.0f + 0x1p-10f + 0x1p-20f, one = 1.0f;
  Aligned packed(bf16_tiles::packed_size(1, 1, parts));
  bf16_tiles::pack({&one, 1, tb}, 1, 1, parts, packed.data);
  float c = 0;
  bf16_tiles::multiply({&x, 1, ta}, {packed.data, 1, 1, parts}, 0, 1, &c, 1, 1,
                       false);
  EXPECT_EQ(c, parts == Parts::one   ? one
               : parts == Parts::two ? 1.0f + 0x1p-10f
                                     : x);
}

TEST_P(Tiles, NeverHideWhatIsNotFinite) {
  const auto [parts, ta, tb] = GetParam();
  for (const float bad : {std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    const MatrixOf<float> b = numbers(20, 20, 1);
    MatrixOf<float> a = numbers(20, 20, 2);
    a(ta ? 7 : 3, ta ? 3 : 7) = bad;
    Aligned packed(bf16_tiles::packed_size(20, 20, parts));
    bf16_tiles::pack({b.data(), 20, tb}, 20, 20, parts, packed.data);
    MatrixOf<float> c(20, 20);
    bf16_tiles::multiply({a.data(), 20, ta}, {packed.data, 20, 20, parts}, 0,
                         20, c.data(), 20, 20, false);
    EXPECT_FALSE(c.row(3).array().isFinite().any());
    EXPECT_TRUE(c.row(4).allFinite());
  }
}

INSTANTIATE_TEST_SUITE_P(
    , Tiles,
    testing::Combine(testing::Values(Parts::one, Parts::two, Parts::three),
                     testing::Bool(), testing::Bool()));

// Through gemm.h, on every CPU; sizes at which tiles are taken where they are.
TEST(RightFactor, MultipliesAsTheFactorItWasMadeOf) {
  for (const bool tb : {false, true})
    for (const Precision precision : all_precisions) {
      const Parts parts = precision == Precision::full   ? Parts::three
                          : precision == Precision::high ? Parts::two
                                                         : Parts::one;
      const MatrixOf<float> a = numbers(130, 200, 1);
      const MatrixOf<float> b = numbers(tb ? 150 : 200, tb ? 200 : 150, 2);
      const Matrix wide =
          (tb ? MatrixOf<float>(b.transpose()) : b).cast<double>();
      const Matrix exact = a.cast<double>() * wide;
      const Matrix magnitudes = a.cast<double>().cwiseAbs() * wide.cwiseAbs();
      const auto check = [&](const MatrixOf<float>& c) {
        for (Index i = 0; i < c.size(); ++i)
          ASSERT_LE(std::abs(c.data()[i] - exact.data()[i]),
                    slack(parts, 200, magnitudes.data()[i]));
      };
      const Factor<float> factor{view(b), tb};
      MatrixOf<float> c(130, 150);
      gemm<float>(as_is(a), factor, view(c), Into::overwrite, precision);
      check(c);
      const RightFactor<float> ready(factor, precision);
      gemm<float>(as_is(a), ready, view(c));
      check(c);
      gemm<float>(as_is(a), ready, view(c), Into::add);
      check(c / 2);
    }
}

TEST(RightFactor, HasTheSameBitsForAnyNumberOfThreads) {
  // odd sizes, larger than a tile both ways
  const MatrixOf<float> a = numbers(601, 77, 1), b = numbers(77, 809, 2);
  for (const Precision precision : {Precision::full, Precision::bf16}) {
    const RightFactor<float> ready(as_is(b), precision);
    const MatrixOf<float> one = product(as_is(a), ready, 1);
    EXPECT_EQ(one, product(as_is(a), ready, 2));
    EXPECT_EQ(one, product(as_is(a), ready, 3));
    const Matrix exact = a.cast<double>() * b.cast<double>();
    EXPECT_LT((one.cast<double>() - exact).cwiseAbs().maxCoeff(),
              precision == Precision::full ? 1e-4 : 0.2);
  }
}

TEST(RightFactor, LongSumsHaveTheSameBitsForAnyNumberOfThreads) {
  const MatrixOf<float> a = numbers(3000, 40, 1), b = numbers(3000, 30, 2);
  for (const Precision precision : all_precisions) {
    MatrixOf<float> one(40, 30), three(40, 30);
    product_into<float>(transposed(a), as_is(b), view(one), 1, precision);
    product_into<float>(transposed(a), as_is(b), view(three), 3, precision);
    EXPECT_EQ(one, three);
    const Matrix exact = a.cast<double>().transpose() * b.cast<double>();
    EXPECT_LT((one.cast<double>() - exact).cwiseAbs().maxCoeff(),
              precision == Precision::full   ? 1e-3
              : precision == Precision::high ? 0.02
                                             : 0.7);
  }
}

}  // namespace bf16_tiles_test
}  // namespace lipscope
