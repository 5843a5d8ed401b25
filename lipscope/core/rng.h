#pragma once

#include <array>
#include <cstdint>

#include "lipscope/core/matrix.h"

namespace lipscope {

/// A seeded generator of uniform and normal numbers that can be split.
///
/// xoshiro256++ [Blackman21], its state filled by SplitMix64 [Steele14]. The
/// same seed gives the same numbers with every compiler and standard library,
/// and work that is split by stream gives the same numbers on any number of
/// threads.
class Rng {
 public:
  explicit Rng(std::uint64_t seed);

  /// A generator of its own for piece number `stream` of the work. It depends
  /// on the seed and the stream alone, not on what was drawn before.
  Rng split(std::uint64_t stream) const;

  std::uint64_t next();
  double uniform();  ///< in [0, 1), 53 random bits
  double normal();   ///< mean 0, variance 1, by the polar method

 private:
  std::uint64_t seed_;
  std::array<std::uint64_t, 4> state_;
  double spare_ = 0.0;
  bool has_spare_ = false;
};

/// Independent standard normal entries, drawn row by row.
Matrix gaussian(Index rows, Index cols, Rng rng);

/// A direction uniform on the unit sphere of R^size.
Vector random_direction(Index size, Rng rng);

}  // namespace lipscope
