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
  Mask mask = Mask::none;
  Norm norm = Norm::two;
  /// Each is measured by itself; no number means a lone layer, or the model.
  std::vector<std::optional<Index>> layers;
  /// Each is measured by itself; no number means all heads together.
  std::vector<std::optional<Index>> heads;
};

/// What the options mean for this subject. InputError for what it does not
/// have.
Selection select(const SelectionOptions& options, const SourceOptions& source,
                 const Subject& subject);

/// The selection for one head, or all of them if none is given.
ModelMapOptions map_options(const Selection& selection,
                            std::optional<Index> head);

}  // namespace lipscope::audit
