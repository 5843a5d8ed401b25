#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lipscope/core/gemm.h"
#include "lipscope/model/language_model_config.h"
#include "lipscope/train/training_report.h"

/// What a training run writes into metrics.jsonl: records (docs/records.md) of
/// three or four figures over the step. Losses and gradient norms are values;
/// the constants of each layer's attention are from below and from above.
namespace lipscope {

/// A model that learns, as its records name it.
struct TrainingSubject {
  std::string folder;
  LanguageModelConfig model;
  std::uint64_t seed = 0;
  bool limited = false;                  ///< the constant of the whole model is
  Precision products = Precision::high;  ///< of its steps
};

/// The heads of the figures, ahead of all other lines, with the command line
/// and the machine that the file is from.
std::vector<nlohmann::ordered_json> figure_lines(
    const TrainingSubject& subject);

/// What was seen after a step, which is "x" among the parameters.
std::vector<nlohmann::ordered_json> lines_of(const TrainingSubject& subject,
                                             const Evaluation& evaluation);

/// How a finished run ended; its "split" among the parameters is "test".
std::vector<nlohmann::ordered_json> lines_of(const TrainingSubject& subject,
                                             const RunSummary& summary);

}  // namespace lipscope
