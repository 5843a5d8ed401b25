#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "lipscope/train/corpus.h"
#include "lipscope/train/trainer.h"

/// A folder of a model that learnt or learns here, in the manner of Hugging
/// Face. Every file appears whole or not at all.
///
///   config.json            the model, its characters, and how it was trained
///   model.safetensors      the weights with the best validation loss so far
///   metrics.jsonl          what was seen on the way
///   state.json             where training stands, and which file holds it:
///   checkpoint-N.safetensors   weights and Adam's moments after N steps
///
/// state.json is written when its checkpoint is on the disk, and the one before
/// is taken away after that: a run that is killed at any moment goes on from a
/// whole checkpoint.
namespace lipscope {

struct ModelDescription {
  LanguageModelConfig config;
  Vocabulary vocabulary{{}};
  /// What the run was told, as the command line spells it, and the text.
  nlohmann::ordered_json training = nlohmann::ordered_json::object();
};

/// Makes the folder if need be. InputError if it cannot be written.
void write_description(const std::filesystem::path& folder,
                       const ModelDescription& description);
/// InputError, with the file and the key, for what is not such a folder.
ModelDescription read_description(const std::filesystem::path& folder);

/// The tensors of a buffer by their names, in F32.
void write_weights(const std::filesystem::path& file, const Layout& layout,
                   const VectorOf<float>& weights);
/// InputError if a tensor is missing or has another shape.
VectorOf<float> read_weights(const std::filesystem::path& file,
                             const Layout& layout);

/// Where a run stands.
struct Checkpoint {
  TrainingState state;
  std::optional<double> best_nll;  ///< of validation, and when it was seen
  Index best_step = 0;
};

/// Whether training may have given a file this name,
/// checkpoint-120.safetensors, and takes it away when a later one is written.
bool is_checkpoint(const std::filesystem::path& file);

void write_checkpoint(const std::filesystem::path& folder, const Layout& layout,
                      const Checkpoint& checkpoint);
/// Nothing if the folder has none; InputError if what it has is damaged.
std::optional<Checkpoint> read_checkpoint(const std::filesystem::path& folder,
                                          const Layout& layout);

}  // namespace lipscope
