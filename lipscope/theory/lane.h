#pragma once

#include "lipscope/core/matrix.h"

namespace lipscope {

/// Eight numbers side by side: small matrices, one for each of eight tokens or
/// with rows a multiple of eight long, are worked on in these.
constexpr Index lane_width = 8;
using Lane = Eigen::Array<double, lane_width, 1>;

/// The eight numbers from here on.
inline Eigen::Map<const Lane> lane_at(const double* at) {
  return Eigen::Map<const Lane>(at);
}
inline Eigen::Map<Lane> lane_at(double* at) { return Eigen::Map<Lane>(at); }

/// The same where only `count` are there: the others are 0.
inline Lane lane_of(const double* at, Index count) {
  if (count >= lane_width) return lane_at(at);
  Lane out = Lane::Zero();
  for (Index j = 0; j < count; ++j) out[j] = at[j];
  return out;
}

/// How many numbers lanes for this many have.
inline Index in_lanes(Index size) {
  return (size + lane_width - 1) / lane_width * lane_width;
}

}  // namespace lipscope
