#pragma once

#include <filesystem>
#include <functional>

#include "lipscope/train/model_folder.h"

namespace lipscope {

struct RunOptions {
  Index steps = 1000;
  Index eval_every = 100;  ///< steps between evaluations and checkpoints
  Index measured_characters = 64;  ///< constants are measured at; 0: none are
  bool resume = false;  ///< go on from the folder's checkpoint, if it has one
  /// Called after every step with how many are done; false ends the run after a
  /// checkpoint. May be empty.
  std::function<bool(Index done, const StepReport& report)> keep_going = {};
  /// Called with every line that goes into metrics.jsonl. May be empty.
  std::function<void(const nlohmann::ordered_json& line)> seen = {};
};

/// How a run ended.
struct RunSummary {
  Index steps = 0, best_step = 0;
  double best_valid_nll = 0.0, test_nll = 0.0;  ///< both of the best weights
  bool finished = true;  ///< false if keep_going ended it
  /// Of the best weights, where the constant is limited and the run finished.
  std::optional<PromisedConstant> promised;
};

/// Trains the model of the description on the corpus and keeps its folder (see
/// model_folder.h). At every evaluation a line goes into metrics.jsonl: the
/// validation loss, the batch's, the gradient's norm and that of each layer,
/// and, at the first characters of the validation text, the constant of each
/// layer's attention from below and from above; where the constant of the whole
/// model is limited, its certified value. RunError, and nothing written, if
/// weights are found outside their limits.
///
/// InputError for a folder that has a run already and is not to be resumed, or
/// whose run was told something else. A resumed run ends in the same bits as
/// one that was never interrupted.
RunSummary train_in_folder(const std::filesystem::path& folder,
                           const ModelDescription& description,
                           const Corpus& corpus,
                           const TrainingOptions& training,
                           const RunOptions& options);

}  // namespace lipscope
