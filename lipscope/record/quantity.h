#pragma once

#include <string>

namespace lipscope {

/// What the numbers of a record enclose, or are.
enum class Quantity {
  constant,              ///< the Lipschitz constant of a map
  distance,              ///< to the nearest input that changes a prediction
  reconstruction_error,  ///< of an input that was found from its output
  share,                 ///< of predictions that hold
  loss,                  ///< of a model on a text, in nats a character
  gradient_norm          ///< of the loss by weights
};

/// As records say it: "constant", "reconstruction error".
std::string name_of(Quantity quantity);

/// How a side of an enclosure is known: an example shows it, or a proof.
enum class Evidence { found, proved };

std::string name_of(Evidence evidence);

}  // namespace lipscope
