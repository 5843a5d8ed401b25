#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lipscope/cli/subject.h"
#include "lipscope/model/layer.h"

namespace lipscope::cli {

/// Which map is measured, and in which norm, as the user says it.
struct SelectionOptions {
  std::string map = "attn";
  std::string layers = "all";
  std::string heads = "all";
  std::string mask = "auto";
  std::string norm = "2";
  bool norms = true;  ///< whether the command has a choice of norms
};

void declare_selection(CLI::App& app, SelectionOptions& options);

/// The same, understood.
struct Selection {
  MapName map = MapName::attn;
  Kind kind = Kind::dot;
  std::string kind_name = "dot";  ///< also "contractive-l2", a model's own
  CosineScales cosine;
  Mask mask = Mask::none;
  std::string norm;  ///< "2", "inf" or "token"
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

/// The selected maps, made as they are asked for. The weights of a model's
/// layers stay in memory if all of them fit into a gigabyte.
class Maps {
 public:
  Maps(const Subject& subject, const Selection& selection, int threads,
       std::uint64_t memory);

  template <class Real>
  MapPtr<Real> make(std::optional<Index> layer, std::optional<Index> head,
                    Index sequences);

  /// The weights of a layer, as far as the map needs them; of a lone layer the
  /// attention. Until the next layer is asked for, unless all are kept.
  const LayerWeights& weights(std::optional<Index> layer);
  bool keeps_layers() const { return keep_; }

 private:
  const Subject& subject_;
  const Selection& selection_;
  int threads_;
  std::uint64_t memory_;
  bool keep_;
  std::map<Index, LayerWeights> layers_;
};

}  // namespace lipscope::cli
