#include "lipscope/train/quiet_start.h"

#include <algorithm>
#include <cmath>

namespace lipscope {

Index loud_coordinates(Index width) { return std::max<Index>(1, width / 4); }

double loud_size(Index width) {
  return std::sqrt(static_cast<double>(width) /
                   static_cast<double>(loud_coordinates(width)));
}

Initial loud_characters(Index width, double size) {
  const Index loud = loud_coordinates(width);
  return {.entry = [=](Index, Index c, double normal) {
    return c < loud ? size * normal : 0.0;
  }};
}

Initial quiet_query(Index width, Index k) {
  const Index loud = loud_coordinates(width);
  // two characters differ by 2·size² in each of k features: s²·2k·size²/√k
  const double s = std::sqrt(1.0 / 6.0 / std::sqrt(static_cast<double>(k))) /
                   loud_size(width);
  return {.entry = [=](Index row, Index col, double) {
    return row == col % loud ? s : 0.0;
  }};
}

Initial quiet_value(Index width) {
  const Index loud = loud_coordinates(width);
  return {.entry = [=](Index row, Index col, double) {
    return row == col % loud ? 1.0 : 0.0;
  }};
}

Initial quiet_output(Index width) {
  const Index loud = loud_coordinates(width);
  return {.entry = [=](Index row, Index col, double) {
    return col == loud + row ? 1.0 : 0.0;
  }};
}

Initial quiet_distances(Index width, Index k) {
  const Index loud = loud_coordinates(width);
  return {.entry = [=](Index head, Index t, double) {
    const Index at = 1 + head * k / loud;
    return t == 0 ? 0.0 : -std::min(6.0, std::abs(static_cast<double>(t - at)));
  }};
}

Initial quiet_gains(Index width, double quiet) {
  const Index loud = loud_coordinates(width);
  return {
      .entry = [=](Index, Index c, double) { return c < loud ? 1.0 : quiet; }};
}

}  // namespace lipscope
