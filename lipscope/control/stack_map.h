#pragma once

#include "lipscope/operators/compose.h"
#include "lipscope/theory/stack_constant.h"

namespace lipscope {

/// The stack as a map of one sequence, from the input of layer 0 to the last
/// hidden state after its norm; without the head.
MapPtr<double> stack_map(const Stack& stack, int threads = 0);

}  // namespace lipscope
