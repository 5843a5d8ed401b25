#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lipscope/audit/maps.h"
#include "lipscope/audit/selection.h"
#include "lipscope/theory/bounds.h"

/// What the theory says from above of the attention of a selected layer.
namespace lipscope::audit {

/// Where the radius says that tokens are: in a ball, or what the norm layer
/// ahead of this layer's attention lets through. InputError where there is no
/// such layer, and for a radius that is everywhere.
TokenSet tokens_within(const Radius& radius, const Subject& subject,
                       std::optional<Index> layer);

/// What reaches the attention of a model's layer if nothing is said: what the
/// norm layer ahead of it lets through; anything (radius 0) where there is
/// none and the attention is Lipschitz everywhere; InputError otherwise.
TokenSet tokens_ahead(const Subject& subject, const Selection& selection,
                      std::optional<Index> layer);

/// l2 (tied) and cosine, the first without padding.
bool lipschitz_everywhere(const Selection& selection,
                          std::optional<Index> layer);

/// Every bound on attn or core of the layer (of the head, or all of them) over
/// sequences of n of these tokens; in no order, in every norm.
std::vector<Bound> bounds_of(Maps& maps, const Selection& selection,
                             std::optional<Index> layer,
                             std::optional<Index> head, Index n,
                             const TokenSet& tokens);

/// The smallest of them that speaks of the selected norm, if there is one.
std::optional<Bound> best_bound_of(Maps& maps, const Selection& selection,
                                   std::optional<Index> layer,
                                   std::optional<Index> head, Index n,
                                   const TokenSet& tokens);

}  // namespace lipscope::audit
