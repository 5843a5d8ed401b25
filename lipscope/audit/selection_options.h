#pragma once

#include <string>

#include "lipscope/core/matrix.h"
#include "lipscope/operators/norm.h"

namespace lipscope::audit {

/// Which map is measured, and in which norm, as the user says it.
struct SelectionOptions {
  std::string map = "attn";
  std::string layers = "all";
  std::string heads = "all";
  std::string mask = "auto";
  Index window = 0;     ///< one more, beside the mask; 0: none
  std::string padding;  ///< "BEFORE:AFTER", tokens that no token sees
  Norm norm = Norm::two;
  bool norms = true;  ///< whether the command has a choice of norms
};

}  // namespace lipscope::audit
