#include "lipscope/control/certifier.h"

#include <algorithm>
#include <utility>

#include "lipscope/core/errors.h"

namespace lipscope {
namespace {

// at which the constants of parts are taken where a radius is no double
constexpr double least_change = 1e-300;

}  // namespace

Certifier::Certifier(const Stack& stack)
    : deviation_(stack),
      map_(stack_map(stack, 1)),
      readout_{stack.head, stack.head_bias} {
  require(readout_.weight.size() > 0, "certifier: the model has no head");
  for (const LayerWeights& layer : stack.layers)
    causal_ = causal_ && layer.mask.hides_later;
}

Certifier::Sequence Certifier::sequence(Matrix x) const {
  StatesAlong states = deviation_.at(x);
  return {std::move(x), std::move(states)};
}

Robustness Certifier::at(const Sequence& sequence, Index position,
                         const AttackOptions& options) const {
  require(position >= 0 && position < sequence.x.rows(),
          "certifier: position {} of {}", position, sequence.x.rows());
  // what is read for the prediction
  const Index n = causal_ ? position + 1 : sequence.x.rows();
  Robustness r;
  r.certified = certified_radius(
      sequence.states.last.row(position).transpose(), readout_,
      [&](double size) { return deviation_.gain(sequence.states, n, size); });
  if (r.certified.proved)
    r.parts = deviation_.parts(sequence.states, n,
                               std::max(r.certified.radius, least_change));
  if (options.targets == 0) return r;
  r.attack =
      attack({*map_, readout_, position}, sequence.x.topRows(n), options);
  if (!r.attack) return r;
  const Matrix last = deviation_.at(r.attack->changed).last;
  if (predicted(last.row(position).transpose(), readout_) ==
      r.certified.character)
    throw RunError(fmt::format(
        "certify: the change of size {} that the attack found at position {} "
        "does not change the prediction when it is run again",
        r.attack->distance, position));
  return r;
}

}  // namespace lipscope
