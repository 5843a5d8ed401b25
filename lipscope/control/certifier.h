#pragma once

#include <optional>
#include <string>

#include "lipscope/control/attack.h"
#include "lipscope/control/certify.h"
#include "lipscope/control/deviation.h"

namespace lipscope {

/// How far the prediction after one position of a sequence holds.
struct Robustness {
  CertifiedRadius certified;     ///< no change within this does
  std::optional<Attack> attack;  ///< this change does
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

  /// The prediction after token `position`, of which changes of this token and
  /// those before it are all that matter. With no targets there is no attack.
  Robustness at(const Sequence& sequence, Index position,
                const AttackOptions& options) const;

  /// The bound on attention that radii rest on; empty where there is none.
  std::string bound() const { return deviation_.name(); }

 private:
  Deviation deviation_;
  MapPtr<double> map_;
  Readout readout_;
};

}  // namespace lipscope
