#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "lipscope/train/model_folder.h"
#include "lipscope/train/training_options.h"

namespace lipscope {

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
