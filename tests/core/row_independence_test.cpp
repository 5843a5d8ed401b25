// The promise of core/gemm.h: a row of a product depends on its row of the left
// factor and on the right factor alone, to the last bit.

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <tuple>
#include <vector>

#include "lipscope/core/gemm.h"
#include "lipscope/core/rng.h"

namespace lipscope {
namespace row_independence_test {

enum class Way { prepared, cut };

// left factor transposed, right factor transposed, how, precision, tiles
using Case = std::tuple<bool, bool, Way, Precision, bool>;

template <class Real>
MatrixOf<Real> numbers(Index rows, Index cols, std::uint64_t seed) {
  MatrixOf<Real> m(rows, cols);
  Rng rng(seed);
  for (Index i = 0; i < m.size(); ++i)
    m.data()[i] = static_cast<Real>(rng.uniform() - 0.5);
  return m;
}

class Rows : public testing::TestWithParam<Case> {
 protected:
  Rows() {
    if (!std::get<4>(GetParam())) without_.emplace();
  }

  // Rows of `a` that stand in memory `shift` numbers after where an allocation
  // begins, times `b`.
  template <class Real>
  static MatrixOf<Real> times(const MatrixOf<Real>& a, const Factor<Real>& b,
                              const RightFactor<Real>& ready, Index shift) {
    const auto [ta, tb, way, precision, tiles] = GetParam();
    const MatrixOf<Real> left = ta ? MatrixOf<Real>(a.transpose()) : a;
    VectorOf<Real> in(left.size() + shift), out(a.rows() * b.cols() + shift);
    in.tail(left.size()) = flatten(left);
    const Factor<Real> factor{{in.data() + shift, left.rows(), left.cols(),
                               Eigen::OuterStride<>(left.cols())},
                              ta};
    const View<Real> c{out.data() + shift, a.rows(), b.cols(),
                       Eigen::OuterStride<>(b.cols())};
    if (way == Way::prepared)
      product_into(factor, ready, c, 2);
    else
      product_into(factor, b, c, 2, ready.precision());
    return c;
  }

  template <class Real>
  static void expect_alone_as_together(Index m, Index n, Index k) {
    const auto [ta, tb, way, precision, tiles] = GetParam();
    const MatrixOf<Real> a = numbers<Real>(m, k, 1);
    const MatrixOf<Real> right = numbers<Real>(tb ? n : k, tb ? k : n, 2);
    const Factor<Real> b{view(right), tb};
    const RightFactor<Real> ready(b, precision);
    const MatrixOf<Real> all = times<Real>(a, b, ready, 0);
    Index shift = 1;
    for (const Index count : {Index{1}, Index{3}, Index{16}, Index{20},
                              Index{65}, Index{300}, m - 1}) {
      if (count < 1 || count >= m) continue;
      shift = shift % 16 + 3;
      const Index first = 7 * count % (m - count + 1);
      const MatrixOf<Real> alone =
          times<Real>(a.middleRows(first, count), b, ready, shift);
      ASSERT_TRUE(alone == all.middleRows(first, count))
          << "rows " << first << " to " << first + count << " of " << m << ", ["
          << k << "x" << n << "]";
    }
  }

 private:
  std::optional<WithoutTiles> without_;
};

TEST_P(Rows, DependOnThemselvesAlone) {
  // few and many rows and columns, short and long sums; more than a tile of
  // rows, and sums that are made in pieces
  const std::vector<std::array<Index, 3>> shapes{
      {5, 3, 4},     {33, 1, 7},     {40, 17, 1},     {70, 48, 48},
      {129, 49, 65}, {40, 400, 130}, {330, 150, 97},  {1050, 130, 100},
      {90, 64, 300}, {70, 30, 2100}, {270, 390, 2100}};
  for (const auto& [m, n, k] : shapes) expect_alone_as_together<float>(m, n, k);
  if (std::get<3>(GetParam()) != Precision::full)
    return;  // doubles are always read whole
  for (const auto& [m, n, k] : shapes)
    if (m * n * k < 10'000'000) expect_alone_as_together<double>(m, n, k);
}

INSTANTIATE_TEST_SUITE_P(
    , Rows,
    testing::Combine(testing::Bool(), testing::Bool(),
                     testing::Values(Way::prepared, Way::cut),
                     testing::ValuesIn(all_precisions), testing::Bool()));

// gemm of two factors promises less: the same bits wherever they stand
template <class Real>
void expect_the_same_wherever(Index m, Index n, Index k, bool ta, bool tb) {
  const MatrixOf<Real> a = numbers<Real>(ta ? k : m, ta ? m : k, 1);
  const MatrixOf<Real> b = numbers<Real>(tb ? n : k, tb ? k : n, 2);
  MatrixOf<Real> expected(m, n);
  gemm<Real>({view(a), ta}, {view(b), tb}, view(expected));
  for (const Index shift : {1, 3, 8, 13}) {
    VectorOf<Real> va(a.size() + shift), vb(b.size() + 2 * shift),
        vc(m * n + 3 * shift);
    va.tail(a.size()) = flatten(a);
    vb.tail(b.size()) = flatten(b);
    const View<Real> c{vc.data() + 3 * shift, m, n, Eigen::OuterStride<>(n)};
    gemm<Real>({{va.data() + shift, a.rows(), a.cols(),
                 Eigen::OuterStride<>(a.cols())},
                ta},
               {{vb.data() + 2 * shift, b.rows(), b.cols(),
                 Eigen::OuterStride<>(b.cols())},
                tb},
               c);
    ASSERT_TRUE(c == expected) << m << " " << n << " " << k << " " << ta << tb;
  }
}

TEST(Gemm, HasTheSameBitsWhereverTheFactorsStand) {
  for (const Index m : {1, 2, 5, 8, 33})
    for (const Index n : {1, 2, 5, 8, 33})
      for (const Index k : {1, 3, 6, 64})
        for (const bool ta : {false, true})
          for (const bool tb : {false, true}) {
            expect_the_same_wherever<float>(m, n, k, ta, tb);
            expect_the_same_wherever<double>(m, n, k, ta, tb);
          }
}

}  // namespace row_independence_test
}  // namespace lipscope
