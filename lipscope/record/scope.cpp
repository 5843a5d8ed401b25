#include "lipscope/record/scope.h"

#include "lipscope/core/errors.h"

namespace lipscope {

std::string name_of(Scope scope) {
  switch (scope) {
    case Scope::input:
      return "input";
    case Scope::ball:
      return "ball";
    case Scope::norm_layer:
      return "norm layer";
    case Scope::everywhere:
      return "everywhere";
    case Scope::multiples:
      return "all multiples of the input";
    case Scope::batch:
      return "the batch of the step";
    case Scope::batches:
      return "the batches of all steps, their mean";
    case Scope::validation_text:
      return "the validation text";
    case Scope::test_text:
      return "the test text";
  }
  throw std::logic_error("a scope without a name");
}

Scope scope_of(const InputSet& inputs) {
  if (inputs.is_everywhere()) return Scope::everywhere;
  return inputs.is_one() ? Scope::input : Scope::ball;
}

}  // namespace lipscope
