#pragma once

#include <memory>
#include <optional>
#include <string>

#include "lipscope/audit/lone_layer.h"
#include "lipscope/audit/progress.h"
#include "lipscope/audit/source.h"
#include "lipscope/model/model.h"

namespace lipscope::audit {

/// What the seed is split into.
enum Stream : std::uint64_t { weight_stream = 0, token_stream = 1 };

/// What a command is about: one layer by itself, or a model; and its name.
struct Subject {
  std::shared_ptr<const LoneLayer> layer;
  std::optional<Model> model;
  std::string name;  ///< the file, the folder, the recipe, or "in memory"
  std::optional<std::string> sha256;
  /// Whether all layers of the model may be in memory together: see
  /// SourceOptions::layer_memory.
  bool keeps_layers = true;

  Index layers() const;
  Index heads() const;
  Index features() const;
  Mask mask(Index number) const;  ///< of a layer, its own
};

/// InputError if it is not to be had. Who watches is told how much of the files
/// of a large model is hashed, which reads all of them.
Subject load_subject(const SourceOptions& options, const Watch& watch = {});

/// How many numbers a layer has, about.
double numbers_of_a_layer(const ModelConfig& config);

/// The norm whose output the attention of this layer reads; nothing where there
/// is none.
std::optional<NormWeights> input_norm(const Subject& subject,
                                      std::optional<Index> layer);

}  // namespace lipscope::audit
