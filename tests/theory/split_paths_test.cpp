// The parts of the split certificate, which are made for many tokens together,
// against the same made plainly, for one pair of tokens after another.

#include "lipscope/theory/split_paths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lipscope/attention/dense.h"
#include "lipscope/core/rng.h"
#include "lipscope/spectral/dense.h"
#include "lipscope/theory/head_grams.h"
#include "lipscope/theory/token_pairs.h"

namespace lipscope {
namespace split_test {

TEST(HeadGrams, AreTheProductsOneByOne) {
  for (const Index r : {1, 3}) {
    const Index heads = 3, w = 5, n = 4;
    const Matrix weights = gaussian(heads * w, 7, Rng(1));
    const Matrix x = gaussian(n * r, heads * w, Rng(2));
    const Matrix grams = head_grams(gram_of_rows(weights), x, heads, r);
    ASSERT_EQ(grams.rows(), n);
    for (Index i = 0; i < n; ++i) {
      Matrix made(heads * r, 7);
      for (Index h = 0; h < heads; ++h)
        made.middleRows(h * r, r) =
            x.block(i * r, h * w, r, w) * weights.middleRows(h * w, w);
      const Matrix expected = made * made.transpose();
      EXPECT_LT((flatten(expected).transpose() - grams.row(i)).norm(),
                1e-13 * expected.norm());
    }
  }
  EXPECT_THROW(head_grams(gram_of_rows(gaussian(6, 6, Rng(1))),
                          gaussian(3, 6, Rng(2)), 3, 2),
               std::invalid_argument);
}

// more tokens than a tile has, widths that fill lanes and that do not
struct Size {
  Index heads, k, w, n;
  bool projected;
  Mask mask;
};
constexpr Size sizes[] = {{1, 1, 1, 3, true, Mask::none},
                          {3, 5, 8, 70, true, Mask::none},
                          {2, 6, 3, 37, true, Mask::causal},
                          {4, 2, 9, 20, false, Mask::causal},
                          {1, 10, 9, 12, true, Mask::none}};

struct Layer {
  LayerParts parts;
  LayerAt at;
};

Layer layer(const Size& s, std::uint64_t seed) {
  const Rng rng(seed);
  const Index d = 11;
  AttentionWeights w;
  w.heads = s.heads;
  w.query = gaussian(d, s.heads * s.k, rng.split(0)) / 4;
  w.key = gaussian(d, s.heads * s.k, rng.split(1));
  w.value = gaussian(d, s.heads * s.w, rng.split(2));
  w.query_bias = flatten(gaussian(1, s.heads * s.k, rng.split(3)));
  w.key_bias = 10 * flatten(gaussian(1, s.heads * s.k, rng.split(4)));
  if (s.projected) w.output = gaussian(s.heads * s.w, d, rng.split(5));
  Layer out;
  out.parts = layer_parts(w, {.mask = s.mask, .project = s.projected});
  out.at = layer_at(out.parts, gaussian(s.n, d, rng.split(6)));
  return out;
}

// W_O^h, or where heads stand side by side its rows of the identity
Matrix output_of(const LayerParts& l, Index h) {
  return l.projected ? Matrix(l.output.middleRows(h * l.w, l.w))
                     : Matrix(Matrix::Identity(l.heads * l.w, l.heads * l.w)
                                  .middleRows(h * l.w, l.w));
}

// ‖Σ_h P^h ⊗ W_V^hW_O^h‖ by forming it
double dense_value_path(const LayerParts& l, const std::vector<Matrix>& p) {
  const Index n = p[0].rows(), d = l.value.rows();
  const Index e = l.projected ? l.output.cols() : l.heads * l.w;
  Matrix whole = Matrix::Zero(n * d, n * e);
  for (Index h = 0; h < l.heads; ++h) {
    const Matrix v = l.value.middleCols(h * l.w, l.w) * output_of(l, h);
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < n; ++j)
        whole.block(j * d, i * e, d, e) += p[h](i, j) * v;
  }
  return dense_norm(whole).value;
}

// two heads of one column each, W_V = diag(a) and W_O = diag(b), or all of one
// feature
Layer two_heads(const Matrix& value, const Matrix& output, const Matrix& first,
                const Matrix& second) {
  AttentionWeights w;
  w.heads = 2;
  w.query = w.key = Matrix::Zero(value.rows(), 2);
  w.value = value;
  w.output = output;
  Layer out;
  out.parts = layer_parts(w, {});
  out.at = layer_at(out.parts, Matrix::Ones(first.rows(), value.rows()));
  out.at.p = {first, second};
  return out;
}

double value_path(const Layer& layer) {
  return value_path_above(layer.parts, split_weights(layer.parts), layer.at);
}

TEST(SplitCertificate, ValuePathIsTheFormulaWorkedByHand) {
  // the same weights in both heads, with the singular values √(3 ± √5)/2
  const Matrix same = (Matrix(2, 2) << 1, 0, 0.5, 0.5).finished();
  const double first = std::sqrt(3 + std::sqrt(5.0)) / 2;
  const double second = std::sqrt(3 - std::sqrt(5.0)) / 2;
  const auto across = [&](double a, double b) {
    const Matrix value = Eigen::Vector2d(a, b).asDiagonal();
    const Matrix output = Eigen::Vector2d(b, a).asDiagonal();
    return value_path(two_heads(value, output, same, same));
  };
  // c = first in both: 2 first; the rest is second: 2·2 second is less
  EXPECT_NEAR(across(1, 2), 2 * first, 1e-6);
  // 3 first is less than 3·3 second
  EXPECT_NEAR(across(1, 3), 9 * second, 1e-6);
  // all look at the first token, and at the second: c = 1 and 1, r = ±(1,
  // −1)/√2, nothing is left. V = 3, and ∓3: (V_1 + V_2, V_1 − V_2) = (0, 6),
  // and (6, 0)
  const Matrix one = (Matrix(2, 2) << 1, 0, 1, 0).finished();
  const Matrix two = (Matrix(2, 2) << 0, 1, 0, 1).finished();
  for (const double sign : {-1.0, 1.0}) {
    const Matrix value = Eigen::RowVector2d(1, 3);
    const Matrix output = Eigen::Vector2d(3, sign);
    EXPECT_NEAR(value_path(two_heads(value, output, one, two)), 6.0, 1e-6);
    // the mirror image: s = ±(1, −1)/√2
    EXPECT_NEAR(
        value_path(two_heads(value, output, one.transpose(), two.transpose())),
        6.0, 1e-6);
  }
}

TEST(SplitCertificate, ValuePathIsAboveItsNorm) {
  double nearest = 0.0;
  for (std::uint64_t trial = 0; trial < 300; ++trial) {
    const Rng rng = Rng(9).split(trial);
    const Index heads = 1 + trial % 4, w = 1 + trial % 3;
    // few tokens of wide layers, whose weights are not asked, and others
    const Index d = trial % 5 == 0 ? 1 : 6,
                n = trial % 7 == 0 ? 26 : 1 + trial % 6;
    AttentionWeights a;
    a.heads = heads;
    a.query = 2.0 * (trial % 4) * gaussian(d, heads * 2, rng.split(0));
    a.key = gaussian(d, heads * 2, rng.split(1));
    a.value = gaussian(d, heads * w, rng.split(2));
    if (trial % 6 == 0)  // heads that read alike
      for (Index h = 1; h < heads; ++h)
        a.value.middleCols(h * w, w) = a.value.leftCols(w);
    if (trial % 3 != 0) a.output = gaussian(heads * w, 5, rng.split(3));
    if (trial % 9 == 1) a.output.topRows(w) *= 1e6;
    if (trial % 11 == 1) a.value *= 1e-30;
    if (trial % 13 == 1) a.value *= 1e120;  // to the fourth power: too much
    const LayerParts l =
        layer_parts(a, {.mask = trial % 2 ? Mask::causal : Mask::none});
    const LayerAt at = layer_at(l, gaussian(n, d, rng.split(4)));
    const double exact = dense_value_path(l, at.p);
    const SplitWeights split = split_weights(l);
    const double found = value_path_above(l, split, at);
    ASSERT_GE(found, exact * (1 - 1e-12)) << trial;
    double most = 0.0;
    for (const Matrix& p : at.p) most = std::max(most, dense_norm(p).value);
    EXPECT_LE(found, split.norm_value * split.norm_output * most * (1 + 1e-3))
        << trial;
    if (heads > 1 && n > 1) nearest = std::max(nearest, exact / found);
  }
  EXPECT_GT(nearest, 0.99);
}

TEST(SplitCertificate, KeyPathIsAboveItsNorms) {
  for (const Size& size : sizes) {
    const auto [l, at] = layer(size, 1);
    const Matrix means = head_means(l, at, at.v);
    const Matrix found = key_path_norms_above(l, split_weights(l), at, means);
    // rank ≤ H: (Σλ⁸)^{1/8} is at most H^{1/8} λ, and norms are its root
    const double most = std::pow(static_cast<double>(l.heads), 0.0625);
    for (Index i = 0; i < size.n; ++i)
      for (Index j = 0; j < size.n; ++j) {
        Matrix part = Matrix::Zero(l.key.rows(), output_of(l, 0).cols());
        for (Index h = 0; h < l.heads; ++h) {
          Eigen::RowVectorXd mean = Eigen::RowVectorXd::Zero(l.w);
          for (Index m = 0; m < size.n; ++m)
            mean += at.p[h](i, m) * at.v.row(m).segment(h * l.w, l.w);
          part += l.key.middleCols(h * l.k, l.k) *
                  at.q.row(i).segment(h * l.k, l.k).transpose() *
                  at.p[h](i, j) * (at.v.row(j).segment(h * l.w, l.w) - mean) *
                  output_of(l, h);
        }
        const double exact = dense_norm(part).value;
        EXPECT_GE(found(i, j), exact * (1 - 1e-13)) << i << " " << j;
        // the root of what rounding may hide, where all of G cancels
        EXPECT_LE(found(i, j), exact * most + 1e-3) << i << " " << j;
      }
  }
}

TEST(SplitCertificate, QueryPathIsAboveItsNorms) {
  for (const Size& size : sizes) {
    const auto [l, at] = layer(size, 2);
    const Vector found = query_path_norms_above(l, split_weights(l), at);
    for (Index i = 0; i < size.n; ++i) {
      Matrix part = Matrix::Zero(l.query.rows(), output_of(l, 0).cols());
      for (Index h = 0; h < l.heads; ++h) {
        Matrix c = Matrix::Zero(l.k, l.w);
        Eigen::RowVectorXd mean = Eigen::RowVectorXd::Zero(l.w);
        for (Index j = 0; j < size.n; ++j)
          mean += at.p[h](i, j) * at.v.row(j).segment(h * l.w, l.w);
        for (Index j = 0; j < size.n; ++j)
          c += at.p[h](i, j) * at.k.row(j).segment(h * l.k, l.k).transpose() *
               (at.v.row(j).segment(h * l.w, l.w) - mean);
        part += l.query.middleCols(h * l.k, l.k) * c * output_of(l, h);
      }
      const double exact = dense_norm(part).value;
      EXPECT_GE(found[i], exact * (1 - 1e-13)) << i;
      // where C has no more rows or columns than are kept nothing is cut
      const bool whole = std::min(l.k, l.w) <= 4;
      EXPECT_LE(found[i], exact * (whole ? 1.4 : 1.8) + 1e-6) << i;
    }
  }
}

TEST(TokenPairs, OfOneHeadAreThoseOfTheDenseJacobian) {
  int shrunk = 0;  // pairs below P_ij ‖V‖, where the key part takes away
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const Rng rng(seed);
    const Index d = 13, k = 4, w = seed % 2 == 0 ? 10 : 3, n = 11;
    AttentionWeights weights;
    weights.query = 0.3 * gaussian(d, k, rng.split(0));
    weights.key = gaussian(d, k, rng.split(1));
    weights.value = gaussian(d, w, rng.split(2));
    if (seed % 4 < 2) {  // one direction far above, and keys along it
      weights.key.col(0) = weights.value.col(0);
      weights.value.col(0) *= 9;
    }
    weights.query_bias = flatten(gaussian(1, k, rng.split(3)));
    if (seed % 3 != 0) weights.output = gaussian(w, 6, rng.split(4));
    const Matrix x =
        std::pow(4.0, seed % 3 - 1.0) * gaussian(n, d, rng.split(5));
    const AttentionOptions options{.mask =
                                       seed < 4 ? Mask::none : Mask::causal};
    const LayerParts l = layer_parts(weights, options);
    const LayerAt at = layer_at(l, x);
    const Matrix found = token_pair_norms_above(l, at);
    const Matrix J = dense_jacobian(weights, options, x);
    const Index e = J.rows() / n;
    const double value =
        dense_norm(l.projected ? Matrix(l.value * l.output) : l.value).value;
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < n; ++j) {
        const double exact = dense_norm(J.block(i * e, j * d, e, d)).value;
        EXPECT_GE(found(i, j), exact * (1 - 1e-9)) << seed << " " << i << j;
        EXPECT_LE(found(i, j),
                  exact * (i == j ? std::pow(w, 1.0 / 16) : 1.03) + 1e-5)
            << seed << " " << i << " " << j;
        if (i != j && at.p[0](i, j) > 1e-3)
          shrunk += exact < 0.9 * at.p[0](i, j) * value;
      }
  }
  EXPECT_GT(shrunk, 5);
}

}  // namespace split_test
}  // namespace lipscope
