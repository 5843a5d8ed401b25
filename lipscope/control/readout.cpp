#include "lipscope/control/readout.h"

#include "lipscope/core/errors.h"

namespace lipscope {

void require_sound(const Readout& readout) {
  require(readout.weight.cols() >= 2, "prediction: {} characters",
          readout.weight.cols());
  require(
      readout.bias.size() == 0 || readout.bias.size() == readout.weight.cols(),
      "prediction: a bias of {} numbers for {} characters", readout.bias.size(),
      readout.weight.cols());
}

Vector logits_of(const Vector& hidden, const Readout& readout) {
  require(hidden.size() == readout.weight.rows(),
          "prediction: a state of {} features, the head reads {}",
          hidden.size(), readout.weight.rows());
  Vector z = readout.weight.transpose() * hidden;
  if (readout.bias.size() > 0) z += readout.bias;
  return z;
}

Index predicted(const Vector& hidden, const Readout& readout) {
  Index best = 0;
  logits_of(hidden, readout).maxCoeff(&best);
  return best;
}

}  // namespace lipscope
