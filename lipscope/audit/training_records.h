#pragma once

#include <functional>
#include <string>

#include "lipscope/train/training_run.h"

namespace lipscope::audit {

/// A model that learns, as its records name it.
struct TrainingSubject {
  std::string folder;
  LanguageModelConfig model;
  std::uint64_t seed = 0;
  bool limited = false;  ///< the constant of the whole model is
};

/// What a training run writes into metrics.jsonl: records (docs/records.md) of
/// three or four figures over the step. Losses and gradient norms are values;
/// the constants of each layer's attention are from below and from above, and
/// where these contradict each other Violation is thrown once they are written.
/// Each record is handed to `shown` as well, which may be empty.
using ShowLine = std::function<void(const nlohmann::ordered_json& record)>;
Metrics training_metrics(const TrainingSubject& subject, const ShowLine& shown);

}  // namespace lipscope::audit
