#include "lipscope/train/initial.h"

#include <Eigen/QR>
#include <algorithm>
#include <cmath>

namespace lipscope {
namespace {

constexpr double character_deviation = 0.3;

// angles of wave f of `waves` from one position to the next: 1 … 1/64
double frequency(Index f, Index waves) {
  return waves == 1 ? 1.0
                    : std::pow(64.0, -static_cast<double>(f) /
                                         static_cast<double>(waves - 1));
}

// Σ_f |wave_f(t + 1) − wave_f(t)|²
double step_of_place(Index width) {
  double sum = 0.0;
  const Index waves = place_coordinates(width) / 2;
  for (Index f = 0; f < waves; ++f)
    sum += 2 * (1 - std::cos(frequency(f, waves)));
  return sum;
}

struct Shape {
  double d, k, root, places, characters;  // coordinates of each sort
  bool apart;

  Shape(Index width, Index heads)
      : d(static_cast<double>(width)),
        k(static_cast<double>(width / heads)),
        root(std::sqrt(k)),
        places(static_cast<double>(place_coordinates(width))),
        characters(d - places),
        apart(places > 0 && width / heads >= 2) {}

  // The deviation of features that read characters. Two of these are
  // |Δ|² = 2·characters·deviation² apart, which ⌈k/2⌉ features see as
  // s² ⌈k/2⌉ |Δ|²/√k: one sixth
  double faint() const {
    return std::sqrt(root / 6 /
                     (std::ceil(k / 2) * 2 * characters * character_deviation *
                      character_deviation));
  }
};

// whether a feature of a head reads places
bool reads_place(Index feature, Index k) { return feature < k / 2; }

}  // namespace

Initial zeros() { return {}; }

Initial orthogonal(double gain) {
  return {.form = Initial::Form::orthogonal, .gain = gain};
}

Matrix orthonormal(Index rows, Index cols, Rng rng) {
  if (rows < cols) return orthonormal(cols, rows, rng).transpose();
  const Eigen::HouseholderQR<Matrix> qr(gaussian(rows, cols, rng));
  Matrix q = qr.householderQ() * Matrix::Identity(rows, cols);
  for (Index j = 0; j < cols; ++j)
    if (qr.matrixQR()(j, j) < 0) q.col(j) = -q.col(j);
  return q;
}

Index place_coordinates(Index width) { return width / 8 * 2; }

Initial waves(Index width) {
  const Index places = place_coordinates(width);
  if (places == 0) return {.deviation = 0.1};
  return {.entry = [places](Index t, Index c, double) {
    if (c >= places) return 0.0;
    const double angle = static_cast<double>(t) * frequency(c / 2, places / 2);
    return c % 2 == 0 ? std::sin(angle) : std::cos(angle);
  }};
}

Initial characters_beside_places(Index width) {
  const Index places = place_coordinates(width);
  if (places == 0) return {.deviation = 0.1};
  return {.entry = [places](Index, Index c, double normal) {
    return c < places ? 0.0 : character_deviation * normal;
  }};
}

Initial tied_query(Index width, Index heads) {
  const Shape s(width, heads);
  // distances of unit features near 1
  if (!s.apart) return {.deviation = std::sqrt(0.5 / s.root / s.d)};
  const Index k = width / heads, places = place_coordinates(width);
  const double near = step_of_place(width);
  return {.entry = [=](Index row, Index col, double normal) {
    const bool place = row < places;
    if (place != reads_place(col % k, k)) return 0.0;
    if (!place) return s.faint() * normal;
    // s² ⌊k/2⌋ near/√k = 64^{−h/(H−1)}
    const double score =
        std::pow(64.0, heads == 1 ? -0.5
                                  : -static_cast<double>(col / k) /
                                        static_cast<double>(heads - 1));
    return std::sqrt(score * s.root / (near * std::floor(s.k / 2))) * normal;
  }};
}

Initial tied_value(Index width, Index heads, Index layers) {
  const Shape s(width, heads);
  const double share = std::min(1.0, 2 / static_cast<double>(layers));
  if (!s.apart) return {.deviation = share * s.root / std::sqrt(s.d)};
  const Index places = place_coordinates(width);
  // x W_Q W_Qᵀ/√k multiplies characters by `through` and adds as much of each
  // other in every feature; W_V brings the sum back to size
  const double features = std::ceil(s.k / 2);
  const double through = s.faint() * s.faint() * features / s.root *
                         std::sqrt(1 + s.characters / features);
  const double deviation = share * 1.5 / (through * std::sqrt(s.characters));
  return {.entry = [=](Index row, Index, double normal) {
    return row < places ? 0.0 : deviation * normal;
  }};
}

}  // namespace lipscope
