#include "lipscope/core/panels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lipscope/core/rng.h"

namespace lipscope {
namespace panels_test {

template <class Real>
Real fused(Real a, Real b, Real c) {
#if defined(__FMA__) || defined(__aarch64__)
  return std::fma(a, b, c);
#else
  return a * b + c;
#endif
}

// c_ij as panels.h writes it down
template <class Real>
Real by_definition(const MatrixOf<Real>& a, const MatrixOf<Real>& b, Index i,
                   Index j, Real before, bool add) {
  Real c = before;
  for (Index q = 0; q < a.cols(); q += panels::piece_depth) {
    Real s = 0;
    const Index end = std::min(q + panels::piece_depth, a.cols());
    for (Index p = q; p < end; ++p) s = fused(a(i, p), b(p, j), s);
    c = add || q > 0 ? c + s : s;
  }
  return c;
}

template <class Real>
class Panels : public testing::Test {
 protected:
  void expect_definition(Index m, Index k, Index n, bool a_turned,
                         bool b_turned, bool add) {
    SCOPED_TRACE(testing::Message() << m << " x " << k << " x " << n << " "
                                    << a_turned << b_turned << add);
    const MatrixOf<Real> a = gaussian(m, k, Rng(1)).template cast<Real>();
    const MatrixOf<Real> b = gaussian(k, n, Rng(2)).template cast<Real>();
    const MatrixOf<Real> before = gaussian(m, n, Rng(3)).template cast<Real>();
    const MatrixOf<Real> a_stored =
        a_turned ? MatrixOf<Real>(a.transpose()) : a;
    const MatrixOf<Real> b_stored =
        b_turned ? MatrixOf<Real>(b.transpose()) : b;
    VectorOf<Real> cut(panels::packed_size<Real>(k, n));
    panels::pack<Real>({b_stored.data(), b_stored.cols(), b_turned}, k, n,
                       cut.data());
    // with a column on either side that must stay
    MatrixOf<Real> c = MatrixOf<Real>::Constant(m, n + 2, 7);
    c.middleCols(1, n) = before;
    panels::multiply<Real>({a_stored.data(), a_stored.cols(), a_turned},
                           cut.data(), k, n, 0, n, c.data() + 1, c.cols(), m,
                           add);
    for (Index i = 0; i < m; ++i) {
      EXPECT_EQ(c(i, 0), 7);
      EXPECT_EQ(c(i, n + 1), 7);
      for (Index j = 0; j < n; ++j)
        ASSERT_EQ(c(i, j + 1),
                  by_definition<Real>(a, b, i, j, before(i, j), add))
            << i << ", " << j;
    }
  }
};

using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(Panels, Reals);

// whole panels and packets, and what is left of either
TYPED_TEST(Panels, HaveTheBitsOfTheDefinitionWhateverIsLeftOver) {
  for (const Index n : {1, 7, 8, 9, 16, 17, 24, 25, 32, 33, 48, 49, 64, 100})
    this->expect_definition(9, 11, n, false, false, false);
  for (Index m = 1; m <= 17; ++m)
    for (const bool turned : {false, true})
      this->expect_definition(m, 19, 20, turned, false, false);
}

TYPED_TEST(Panels, AddPiecesOfLongSumsInTheirOrder) {
  for (const Index k : {1, 255, 256, 257, 600})
    for (const bool add : {false, true})
      for (const bool turned : {false, true})
        this->expect_definition(5, k, 19, turned, !turned, add);
  this->expect_definition(130, 30, 16, false, false, true);
}

}  // namespace panels_test
}  // namespace lipscope
