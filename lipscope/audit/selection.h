#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lipscope/audit/subject.h"
#include "lipscope/model/layer.h"
#include "lipscope/operators/norm.h"

namespace lipscope::audit {

/// Which map is measured, and in which norm, as the user says it.
struct SelectionOptions {
  std::string map = "attn";
  std::string layers = "all";
  std::string heads = "all";
  std::string mask = "auto";
  Norm norm = Norm::two;
  bool norms = true;  ///< whether the command has a choice of norms
};

/// The same, understood.
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
