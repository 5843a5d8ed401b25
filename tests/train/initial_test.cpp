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

}  // namespace initial_test
}  // namespace lipscope
