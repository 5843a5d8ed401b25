#pragma once

#include "lipscope/core/matrix.h"

namespace lipscope {

/// What a model predicts of a hidden state h: the first of the largest logits
/// z = h W + b.
struct Readout {
  Matrix weight;     ///< W [d×V]
  Vector bias = {};  ///< b [V]; empty: 0
};

/// Throws std::invalid_argument unless there are two characters at least and
/// the bias has a number for each.
void require_sound(const Readout& readout);

Vector logits_of(const Vector& hidden, const Readout& readout);

/// The first of the largest.
Index predicted(const Vector& hidden, const Readout& readout);

}  // namespace lipscope
