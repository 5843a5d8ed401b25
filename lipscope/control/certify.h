#pragma once

#include <functional>
#include <optional>

#include "lipscope/control/readout.h"
#include "lipscope/theory/magnitude.h"

/// How far the input of a model may be changed before what it predicts can
/// change: from below by a proof, here; from above by an attack, attack.h.
namespace lipscope {

/// A bound on |change of the hidden state|/|change of the input|, for all
/// changes of the input of size at most r; nothing where nothing is proved. It
/// must not fall as r grows, nor come back once it is nothing.
using Gain = std::function<std::optional<Magnitude>(double r)>;

/// A radius within which a prediction is proved to stay.
struct CertifiedRadius {
  bool proved = false;  ///< whether there is a gain at all; else radius = 0
  Index character = 0;  ///< a, what is predicted
  Index runner_up = 0;  ///< the b that attains the minimum below
  double margin = 0.0;  ///< z_a − z_b of these
  /// min_b (z_a − z_b)/|w_a − w_b|, from below: how far the hidden state may
  /// move. 0 where a does not lead.
  double hidden_radius = 0.0;
  double radius = 0.0;      ///< rounded down; 0 where it underflows
  double log10 = 0.0;       ///< of the radius, rounded down; −∞ for 0
  double gain_log10 = 0.0;  ///< of the gain at this radius, if proved
};

/// The largest r that can be proved, up to a relative 1e-9: a stays ahead of b
/// while |change of h| |w_a − w_b| < z_a − z_b, and that is so if r gain(r) is
/// below the minimum over b of
///
///   (z_a − z_b)/|w_a − w_b|,   z = h W + b, w_b column b of W.
///
/// From each z_a − z_b a relative 1e-9 of |h||w_a − w_b| + |b_a| + |b_b| is
/// taken for what rounding did to h: an allowance, not a proof.
CertifiedRadius certified_radius(const Vector& hidden, const Readout& readout,
                                 const Gain& gain);

}  // namespace lipscope
