#pragma once

#include "lipscope/model/language_model_config.h"
#include "lipscope/train/trainer.h"

namespace lipscope {

/// Numbers that a model learns, rows of norms and biases left out: those of its
/// matrices and tables. A double, as no count of them overflows it.
double learnt_numbers(const LanguageModelConfig& config);

/// Bytes that a model takes at least while it reads one sequence: its numbers,
/// each of so many bytes, and what stands beside them for every layer.
double model_bytes(const LanguageModelConfig& config, double bytes_a_number);

/// Bytes that training takes at least: weights, gradients and Adam's moments,
/// and what the layers keep of a batch for the way back.
double training_bytes(const LanguageModelConfig& config,
                      const TrainingOptions& options);

/// InputError, beginning with `where`, if these are not to be had.
void require_model_memory(const LanguageModelConfig& config,
                          double bytes_a_number, const std::string& where);
void require_training_memory(const LanguageModelConfig& config,
                             const TrainingOptions& options,
                             const std::string& where);

}  // namespace lipscope
