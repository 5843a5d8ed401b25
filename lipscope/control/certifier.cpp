#include "lipscope/control/certifier.h"

#include <utility>

#include "lipscope/core/errors.h"

namespace lipscope {

Certifier::Certifier(const Stack& stack)
    : deviation_(stack), map_(stack_map(stack, 1)), head_(stack.head) {
  require(head_.size() > 0, "certifier: the model has no head");
  require(stack.head_bias.size() == 0, "certifier: the head has a bias");
}

Certifier::Sequence Certifier::sequence(Matrix x) const {
  StatesAlong states = deviation_.at(x);
  return {std::move(x), std::move(states)};
}

Robustness Certifier::at(const Sequence& sequence, Index position,
                         const AttackOptions& options) const {
  const Index n = position + 1;
  require(position >= 0 && n <= sequence.x.rows(),
          "certifier: position {} of {}", position, sequence.x.rows());
  Robustness r;
  r.certified = certified_radius(
      sequence.states.last.row(position).transpose(), head_,
      [&](double size) { return deviation_.gain(sequence.states, n, size); });
  if (options.targets > 0)
    r.attack = attack(*map_, head_, sequence.x.topRows(n), options);
  return r;
}

}  // namespace lipscope
