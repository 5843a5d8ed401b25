#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "lipscope/train/layer_constants.h"
#include "lipscope/train/model_folder.h"

namespace lipscope {

/// What was seen after a step. Losses are in nats for each character.
struct Evaluation {
  Index step = 0;
  double train_nll = 0.0;      ///< of the step's batch, before the step
  Index train_characters = 0;  ///< that were predicted in it
  double valid_nll = 0.0;      ///< of the validation text
  Index valid_characters = 0;
  Index best_step = 0;  ///< of the least validation loss so far
  double rate = 0.0;
  double gradient_norm = 0.0;  ///< of the batch, before clipping
  std::vector<double> layer_gradient_norms;
  std::vector<LayerConstant> attention;  ///< empty if it is not measured
  double characters_per_second = 0.0;
  /// Of these weights, where the constant of the whole model is limited.
  std::optional<PromisedConstant> promised = {};
};

/// How a run ended.
struct RunSummary {
  Index steps = 0, best_step = 0;
  double best_valid_nll = 0.0, test_nll = 0.0;  ///< both of the best weights
  Index test_characters = 0;
  bool finished = true;  ///< false if keep_going ended it
  /// Of the best weights, where the constant is limited and the run finished.
  std::optional<PromisedConstant> promised = {};
};

struct RunOptions {
  Index steps = 1000;
  Index eval_every = 100;  ///< steps between evaluations and checkpoints
  Index measured_characters = 64;  ///< constants are measured at; 0: none are
  bool resume = false;  ///< go on from the folder's checkpoint, if it has one
  /// Without resume: begin anew where the folder holds a model already.
  bool anew = false;
  /// Called after every step with how many are done; false ends the run after a
  /// checkpoint. May be empty.
  std::function<bool(Index done, const StepReport& report)> keep_going = {};
  /// Called after every evaluation. May be empty.
  std::function<void(const Evaluation&)> seen = {};
  /// Called with each record of metrics.jsonl when it is on the disk. May be
  /// empty.
  std::function<void(const nlohmann::ordered_json& record)> recorded = {};
};

/// Trains the model of the description on the corpus and keeps its folder (see
/// model_folder.h), the records of metrics.jsonl included (training_records.h):
/// a run that goes on from a checkpoint takes away those of later steps and of
/// an end, to write them again. An evaluation has the validation loss, the
/// batch's, the gradient's norm and that of each layer, and, at the first
/// characters of the validation text, the constant of each layer's attention
/// from below and from above; where the constant of the whole model is limited,
/// its certified value. RunError, and nothing written, if weights are found
/// outside their limits. Violation, once they are written, if records
/// contradict themselves.
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
