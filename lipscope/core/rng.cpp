#include "lipscope/core/rng.h"

#include <cmath>

namespace lipscope {
namespace {

// SplitMix64: a bijection of 64-bit words that scatters neighbouring seeds.
std::uint64_t scatter(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

constexpr std::uint64_t golden_gamma = 0x9e3779b97f4a7c15u;

std::uint64_t rotate_left(std::uint64_t x, int by) {
  return (x << by) | (x >> (64 - by));
}

}  // namespace

Rng::Rng(std::uint64_t seed) : seed_(seed) {
  std::uint64_t z = seed;
  for (std::uint64_t& word : state_) word = scatter(z += golden_gamma);
}

Rng Rng::split(std::uint64_t stream) const {
  return Rng(scatter(seed_ + golden_gamma) ^ scatter(~stream * golden_gamma));
}

std::uint64_t Rng::next() {
  const std::uint64_t result =
      rotate_left(state_[0] + state_[3], 23) + state_[0];
  const std::uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = rotate_left(state_[3], 45);
  return result;
}

double Rng::uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

double Rng::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  // a point uniform in the unit disc gives two independent normals [Knuth97]
  double u, v, s;
  do {
    u = 2.0 * uniform() - 1.0;
    v = 2.0 * uniform() - 1.0;
    s = u * u + v * v;
  } while (s >= 1.0 || s == 0.0);
  const double scale = std::sqrt(-2.0 * std::log(s) / s);
  spare_ = v * scale;
  has_spare_ = true;
  return u * scale;
}

Matrix gaussian(Index rows, Index cols, Rng rng) {
  Matrix m(rows, cols);
  for (Index i = 0; i < m.size(); ++i) m.data()[i] = rng.normal();
  return m;
}

Vector random_direction(Index size, Rng rng) {
  Vector v(size);
  for (Index i = 0; i < size; ++i) v[i] = rng.normal();
  return v / v.norm();
}

}  // namespace lipscope
