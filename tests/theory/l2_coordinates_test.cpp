#include "lipscope/theory/l2_coordinates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lipscope/attention/multi_head.h"
#include "lipscope/theory/kim21.h"
#include "lipscope/theory/relative_positions.h"
#include "tests/theory/cases.h"

namespace lipscope {
namespace l2_coordinates_test {

using test::bound_value;
using test::expect_close;
using test::norm_inf;
using test::two_l2_heads;

TEST(L2Coordinates, IsTheFormulaWorkedByHand) {
  // k = 4, d = 1. Head 1: N = √5, U = (1, 2, 0, 0)ᵀ·5·(1, 0, 2), |U e_j| =
  // √5·5·(1, 0, 2), |W_Q U e_j| = 25·(1, 0, 2). Head 2: N = √10, √10·2·(0, 3,
  // 2) and 20·(0, 3, 2)
  const double p = kim21_phi_inverse(6);
  const Vector c = l2_coordinates(
      {head(two_l2_heads(), 0), head(two_l2_heads(), 1)}, {p, 2 * p});
  const double first = 25 * (4 * p + 1) / 2, second = 20 * (8 * p + 1) / 2;
  ASSERT_EQ(c.size(), 3);
  expect_close(c[0], first);
  expect_close(c[1], 3 * second);
  expect_close(c[2], 2 * first + 2 * second);
  const BoundSetting q{.kind = Kind::l2, .n = 6};
  expect_close(bound_value(two_l2_heads(), q, "l2_coordinates"),
               (4 * p + 1) / 2 * 90);
  // without W_O each head writes a coordinate of its own
  BoundSetting bare = q;
  bare.project = false;
  expect_close(bound_value(two_l2_heads(), bare, "l2_coordinates"),
               (4 * p + 1) / 2 * 25);
  // W_Q = [1 1; 1 −1]: W_QW_Qᵀ = 2I, so that N = 2 where Σ_f|W_Q e_f|₁² is 8;
  // U = W_Qᵀ, |U e_j| = √2, W_QU = 2I
  AttentionWeights turned;
  turned.query = (Matrix(2, 2) << 1, 1, 1, -1).finished();
  turned.value = Matrix::Identity(2, 2);
  expect_close(bound_value(turned, q, "l2_coordinates"),
               (4 * p * 2 * std::sqrt(2.0) + 2) / std::sqrt(2.0));
}

TEST(L2Coordinates, IsNeverAboveKim21) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Rng rng(seed);
    const Index heads = 1 + static_cast<Index>(seed % 3), k = 2, d = 5;
    const AttentionWeights w{.query = gaussian(d, heads * k, rng.split(0)),
                             .value = gaussian(d, heads * k, rng.split(1)),
                             .output = gaussian(heads * k, d, rng.split(2)),
                             .heads = heads};
    const BoundSetting q{.kind = Kind::l2, .n = 7};
    EXPECT_LE(bound_value(w, q, "l2_coordinates"),
              bound_value(w, q, "kim21_inf"));
  }
}

// Ascent over inputs, weights and numbers for distances at once, by what is
// reached over what is proved.
TEST(L2Coordinates, AreNeverBelowWhatIsReached) {
  for (const bool relative : {false, true}) {
    double nearest = 0.0;
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      const Rng rng(seed);
      const Index n = 2 + static_cast<Index>(seed % 4), d = 2;
      const Index heads = 1 + static_cast<Index>(seed % 2);
      struct Case {
        AttentionWeights w;
        Matrix table, x;
      };
      const auto share = [&](const Case& c) {
        BoundSetting q{.kind = Kind::l2, .mask = Mask::causal, .n = n};
        AttentionOptions how{.kind = Kind::l2, .mask = Mask::causal};
        if (relative)
          q.relative_bias = how.relative_bias =
              RelativeBias{.table = c.table, .looks_back = true};
        const Matrix j =
            materialize(*MultiHeadAttention<double>(c.w, how).linearize(c.x));
        return norm_inf(j) / bound_value(c.w, q, "l2_coordinates");
      };
      Case best{.w = {.query = gaussian(d, heads, rng.split(1)),
                      .value = gaussian(d, heads, rng.split(2)),
                      .output = gaussian(heads, d, rng.split(3)),
                      .heads = heads},
                .table = gaussian(n, heads, rng.split(4)),
                .x = gaussian(n, d, rng.split(5))};
      double most = share(best);
      for (std::uint64_t step = 0; step < 300; ++step) {
        const double size = 2 * std::pow(0.6, double(step % 10));
        const auto noise = [&](const Matrix& m,
                               std::uint64_t stream) -> Matrix {
          return m + size * gaussian(m.rows(), m.cols(),
                                     rng.split(100 + 10 * step + stream));
        };
        Case moved = best;
        moved.x = noise(best.x, 0);
        moved.table = noise(best.table, 1);
        if (step % 3 == 0) moved.w.query = noise(best.w.query, 2);
        if (step % 3 == 1) moved.w.output = noise(best.w.output, 3);
        const double now = share(moved);
        EXPECT_LE(now, 1.0) << "seed " << seed;
        if (now <= most) continue;
        most = now;
        best = moved;
      }
      nearest = std::max(nearest, most);
    }
    EXPECT_GT(nearest, 0.6);
    RecordProperty(relative ? "relative" : "plain", std::to_string(nearest));
  }
}

}  // namespace l2_coordinates_test
}  // namespace lipscope
