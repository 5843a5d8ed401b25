#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "lipscope/model/language_model_config.h"
#include "lipscope/train/training_options.h"

namespace lipscope::audit {

/// A model of characters, the text that it learns, and how.
struct TrainRequest {
  std::string text;    ///< a file
  std::string folder;  ///< of the model
  /// `characters` is found in the text.
  LanguageModelConfig model;
  std::optional<Index> mlp_width;  ///< nothing: 4 times the width
  TrainingOptions training;
  RunOptions run;     ///< what it calls is set by the watch
  bool cost = false;  ///< train without the limit as well, for comparison
};

/// What the limit on the constant costs. Losses are of the best weights on the
/// validation text, in nats for each character.
struct CostOfLimit {
  double limit = 0.0;
  RunSummary limited, unconstrained;

  double in_valid_nll() const {
    return limited.best_valid_nll - unconstrained.best_valid_nll;
  }
};
nlohmann::ordered_json to_json(const CostOfLimit& cost);

/// What training tells while it runs. All may be empty.
struct TrainWatch {
  /// A run begins in this folder: the first, and the one without the limit.
  std::function<void(const std::string& folder)> begins = {};
  /// After every step; false ends the run after a checkpoint.
  std::function<bool(Index done, const StepReport& report)> keep_going = {};
  std::function<void(const Evaluation&)> evaluated = {};
  /// Each record when it is written.
  std::function<void(const nlohmann::ordered_json& record)> record = {};
};

struct Trained {
  RunSummary summary;  ///< not finished if keep_going ended it
  LanguageModelConfig model;
  std::optional<CostOfLimit> cost = {};
};

/// Trains the model and keeps its folder: config.json, model.safetensors,
/// metrics.jsonl and, with `cost`, DIR/unconstrained and cost.json. InputError
/// for what does not go together, before any work.
Trained train(const TrainRequest& request, const TrainWatch& watch = {});

}  // namespace lipscope::audit
