#pragma once

#include <string>

#include "lipscope/theory/input_set.h"

namespace lipscope {

/// The inputs that the number of a record speaks of. The radius of a ball is in
/// the record's radius_max.
enum class Scope {
  input,            ///< one input
  ball,             ///< all inputs whose tokens are in a ball
  norm_layer,       ///< all that a norm layer lets through
  everywhere,       ///< all inputs
  multiples,        ///< one input times any number
  batch,            ///< what one step of training reads
  batches,          ///< what all steps read: a mean over them
  validation_text,  ///< of a model that learns
  test_text
};

/// As records say it: "input", "norm layer", "the batch of the step".
std::string name_of(Scope scope);

/// That of a bound over these inputs.
Scope scope_of(const InputSet& inputs);

}  // namespace lipscope
