#include "lipscope/train/initial.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/train/layout.h"

namespace lipscope {
namespace initial_test {

// Wide heads, so that sums of squares are near what they are on average: 128
// features of each sort, deviations of some 13 %.
constexpr Index width = 512, heads = 2, k = 256;

TEST(Initial, NeighboursOfTiedHeadsBeginAtTheScoresThatAreNamed) {
  Layout layout;
  const Slot places = layout.add_table("p", 9, width, waves(width));
  const Slot query =
      layout.add_matrix("q", width, width, tied_query(width, heads));
  const Vector numbers = layout.initial<double>(1);
  const Matrix step =
      tensor(numbers, places).row(8) - tensor(numbers, places).row(7);
  const auto score = [&](Index h) {
    const Matrix q = tensor(numbers, query).middleCols(h * k, k);
    return (step * q).squaredNorm() / std::sqrt(static_cast<double>(k));
  };
  EXPECT_NEAR(score(0), 1.0, 0.4);
  EXPECT_NEAR(64 * score(1), 1.0, 0.4);
}

TEST(Initial, CharactersAreAFaintSixthApartAndComeOutAtTheirSize) {
  for (const Index layers : {1, 8}) {
    Layout layout;
    const Slot characters =
        layout.add_table("e", 2, width, characters_beside_places(width));
    const Slot query =
        layout.add_matrix("q", width, width, tied_query(width, heads));
    const Slot value =
        layout.add_matrix("v", width, width, tied_value(width, heads, layers));
    const Vector numbers = layout.initial<double>(2);
    const Matrix x = tensor(numbers, characters);
    const Matrix q = tensor(numbers, query).leftCols(k);
    const Matrix v = tensor(numbers, value).leftCols(k);
    const double root = std::sqrt(static_cast<double>(k));
    EXPECT_NEAR(6 * ((x.row(0) - x.row(1)) * q).squaredNorm() / root, 1.0, 0.5);
    const Matrix y = x * q * q.transpose() * v / root;
    const double of_size = std::sqrt(y.squaredNorm() / k) /
                           std::sqrt(x.squaredNorm() / (width - 128));
    EXPECT_NEAR(of_size, layers == 1 ? 1.5 : 1.5 / 4, layers == 1 ? 0.6 : 0.15);
  }
}

TEST(Initial, OrthogonalMatricesHaveAllSingularValuesAtTheirGain) {
  Layout layout;
  layout.add_row("bias", 3, 0.5);
  layout.add_matrix("wide", 20, 50, orthogonal());
  layout.add_matrix("tall", 50, 20, orthogonal(2.5));
  layout.add_matrix("heads", 30, 48, orthogonal(), 4);
  const VectorOf<float> numbers = layout.initial<float>(3);
  for (const Layout::Tensor& t : layout.tensors()) {
    if (!t.matrix) continue;
    const double gain = t.name == "tall" ? 2.5 : 1.0;
    for (Index b = 0; b < t.blocks; ++b) {
      const Matrix w = block(numbers, t, b).cast<double>() / gain;
      const Matrix gram = w.rows() <= w.cols() ? Matrix(w * w.transpose())
                                               : Matrix(w.transpose() * w);
      const Matrix off = gram - Matrix::Identity(gram.rows(), gram.cols());
      EXPECT_LT(off.cwiseAbs().maxCoeff(), 1e-6) << t.name << " " << b;
    }
  }
  // blocks differ, and so do tensors of one shape
  const Layout::Tensor& four = layout.tensors()[3];
  EXPECT_GT((block(numbers, four, 0) - block(numbers, four, 1)).norm(), 0.5f);
}

// E Q = 0 needs the signs of R's diagonal: without them Q's first column would
// point to one side
TEST(Initial, OrthogonalMatricesPointToNoSide) {
  Matrix mean = Matrix::Zero(3, 2);
  constexpr int draws = 2000;
  for (int i = 0; i < draws; ++i)
    mean += orthonormal(3, 2, Rng(5).split(static_cast<std::uint64_t>(i)));
  // entries of variance 1/3: four deviations of a mean of 2000
  EXPECT_LT(mean.cwiseAbs().maxCoeff() / draws, 4 * std::sqrt(1.0 / 3 / draws));
}

// a tensor's numbers come of the seed and its own number: what stands before it
// may begin as it likes
TEST(Initial, DependsOnTheSeedAndTheNumberOfTheTensorAlone) {
  const auto numbers = [](std::uint64_t seed, Initial first, Initial second) {
    Layout layout;
    layout.add_matrix("a", 6, 4, std::move(first), 2);
    const Slot b = layout.add_matrix("b", 4, 6, std::move(second));
    const Vector all = layout.initial<double>(seed);
    return Matrix(tensor(all, b));
  };
  const Matrix plain = numbers(1, {.deviation = 1.0}, {.deviation = 1.0});
  EXPECT_EQ(plain, numbers(1, orthogonal(), {.deviation = 1.0}));
  EXPECT_EQ(plain, numbers(1, zeros(), {.deviation = 1.0}));
  EXPECT_EQ(plain, gaussian(4, 6, Rng(1).split(1)));
  EXPECT_NE(plain, numbers(2, zeros(), {.deviation = 1.0}));
  EXPECT_EQ(numbers(1, zeros(), orthogonal()),
            numbers(1, orthogonal(), orthogonal()));
  EXPECT_NE(numbers(1, zeros(), orthogonal()),
            numbers(2, zeros(), orthogonal()));
  EXPECT_EQ(numbers(1, orthogonal(), zeros()), Matrix::Zero(4, 6));
}

TEST(Layout, RefusesBlocksOfUnequalWidth) {
  Layout layout;
  EXPECT_THROW(layout.add_matrix("w", 4, 6, zeros(), 4), std::invalid_argument);
  EXPECT_THROW(layout.add_matrix("w", 4, 6, zeros(), 0), std::invalid_argument);
}

}  // namespace initial_test
}  // namespace lipscope
