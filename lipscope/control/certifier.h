#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lipscope/control/attack.h"
#include "lipscope/control/certify.h"
#include "lipscope/control/deviation.h"

namespace lipscope {

/// How far the prediction after one position of a sequence holds.
struct Robustness {
  CertifiedRadius certified;     ///< no change within this does
  std::optional<Attack> attack;  ///< this change does
  /// The constants that the radius rests on, at a change of its size; empty
  /// where nothing is proved.
  std::vector<PartGain> parts;
};

/// Asks that of the predictions of a model with a head, position by position.
class Certifier {
 public:
  explicit Certifier(const Stack& stack);

  /// The input of layer 0 of a sequence [n×d], and what the model makes of it.
  struct Sequence {
    Matrix x;
    StatesAlong states;
  };
  Sequence sequence(Matrix x) const;

  /// The prediction at token `position`. Under the causal mask changes of this
  /// token and those before it are all that matter. With no targets there is
  /// no attack. A change that was found is run through the model once more,
  /// part by part; RunError if the prediction is not another one there.
  Robustness at(const Sequence& sequence, Index position,
                const AttackOptions& options) const;

  /// The bound on attention that radii rest on; empty where there is none.
  std::string bound() const { return deviation_.name(); }

  /// The first part of the model of which nothing is proved, and why; empty
  /// where all have a bound.
  const std::string& unbounded() const { return deviation_.unbounded(); }

 private:
  Deviation deviation_;
  MapPtr<double> map_;
  Readout readout_;
  bool causal_ = true;
};

}  // namespace lipscope
