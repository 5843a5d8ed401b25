#pragma once

#include "lipscope/transport/measure.h"
#include "tests/support/layers.h"

/// Measures and layers that the tests of this folder share.
namespace lipscope::test {

/// n unequal masses.
inline Vector random_masses(Index n, std::uint64_t seed) {
  const Vector w = gaussian(n, 1, Rng(seed).split(20)).array().exp();
  return w / w.sum();
}

/// Positions with ties: 0, 0, 1, 1, 2, …
inline Vector paired_positions(Index n) {
  Vector s(n);
  for (Index i = 0; i < n; ++i) s[i] = static_cast<double>(i / 2);
  return s;
}

inline Measure random_measure(const LayerCase& c, double size = 1.0) {
  return make_measure(
      random_tokens(c, size), random_masses(c.n, c.seed),
      c.mask == Mask::causal ? paired_positions(c.n) : Vector());
}

/// Dot-product and tied L2 attention of one and three heads, with and without
/// biases and projection, without a mask and with shared positions.
inline std::vector<LayerCase> measure_cases() {
  std::vector<LayerCase> cases;
  for (const Kind kind : {Kind::dot, Kind::l2})
    for (const Mask mask : {Mask::none, Mask::causal})
      for (const Index heads : {1, 3})
        for (const bool output : {true, false})
          cases.push_back({.kind = kind,
                           .mask = mask,
                           .heads = heads,
                           .fills = heads == 1,
                           .biases = heads > 1,
                           .output = output,
                           .seed = cases.size() + 50,
                           .n = 5,
                           .d = 6});
  return cases;
}

/// One head on numbers: s_ij = a x_i x_j, V = 1.
inline AttentionWeights scalar_layer(double a) {
  AttentionWeights w;
  w.query = Matrix::Constant(1, 1, a);
  w.key = w.value = Matrix::Ones(1, 1);
  return w;
}

}  // namespace lipscope::test
