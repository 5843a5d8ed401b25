#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lipscope/audit/selection_options.h"
#include "lipscope/audit/subject.h"
#include "lipscope/model/layer.h"

namespace lipscope::audit {

/// What SelectionOptions mean for a subject.
struct Selection {
  MapName map = MapName::attn;
  Kind kind = Kind::dot;
  std::string kind_name = "dot";  ///< also "contractive-l2", a model's own
  CosineScales cosine;
  MaskChoice mask;
  /// What the tokens of each layer see that the subject has.
  std::vector<Mask> masks = {Mask::none};
  Norm norm = Norm::two;
  /// Each is measured by itself; no number means a lone layer, or the model.
  std::vector<std::optional<Index>> layers;
  /// Each is measured by itself; no number means all heads together.
  std::vector<std::optional<Index>> heads;

  /// Of a layer; of a lone layer without a number.
  const Mask& mask_of(std::optional<Index> layer) const;
  /// What a pass through the model takes of the masks: its layers have their
  /// own, with this padding.
  MaskChoice padding() const;
};

/// What the options mean for this subject. InputError for what it does not
/// have.
Selection select(const SelectionOptions& options, const SourceOptions& source,
                 const Subject& subject);

/// Makes the masks of all layers from what is chosen.
void set_masks(Selection& selection, const Subject& subject);

/// InputError if in sequences of these lengths a token sees no token.
void require_sound_masks(const std::vector<Mask>& masks,
                         const std::vector<Index>& lengths);

/// What tokens see in a layer, or in all layers where there is no number, in
/// sequences of n tokens: "causal, window 64", "causal, window 64 in 5 of 6
/// layers".
std::string mask_name(const Selection& selection, std::optional<Index> layer,
                      Index n);

/// The selection for one head, or all of them if none is given.
ModelMapOptions map_options(const Selection& selection,
                            std::optional<Index> head);

}  // namespace lipscope::audit
