#pragma once

#include <algorithm>
#include <optional>

#include "lipscope/attention/mask.h"

namespace lipscope {

/// What tokens see where something else is asked for than the layers' own
/// masks.
struct MaskChoice {
  /// In place of a layer's own mask, its window included.
  std::optional<Mask> instead = {};
  std::optional<Index> window = {};  ///< one more, beside that mask
  Index padding_before = 0, padding_after = 0;

  MaskChoice() = default;
  MaskChoice(const Mask& mask) : instead(mask) {}

  /// What the tokens of a layer see whose own mask this is.
  Mask over(const Mask& own) const {
    Mask mask = instead.value_or(own);
    if (window) mask.window = std::min(*window, mask.window.value_or(*window));
    mask.padding_before += padding_before;
    mask.padding_after += padding_after;
    return mask;
  }
};

}  // namespace lipscope
