#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "lipscope/train/training_report.h"

/// How a model learns, as the user says it.
namespace lipscope {

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0.01;  ///< of matrices; not of tables, gains and biases
  int threads = 0;             ///< 0: all cores
};

/// How the rate goes: a linear warm-up over the first `warmup` steps, then as
/// 1/√t, or as it is.
struct Schedule {
  enum class After { inverse_sqrt, fixed };

  double rate = 1e-3;  ///< the largest
  Index warmup = 100;
  After after = After::inverse_sqrt;

  double at(Index t) const;  ///< of step t = 1, 2, …
};

struct WeightLimits {
  /// The certified constant, input of layer 0 → logits (see
  /// theory/stack_constant.h), is at most this; above 1.
  std::optional<double> lipschitz;
  /// ‖W‖₂ of every matrix is at most this; 1 is spectral normalisation.
  std::optional<double> spectral;
};

/// A step.
struct TrainingOptions {
  Index batch = 32;  ///< sequences a step, each as long as the context
  Schedule schedule;
  double clip = 1.0;  ///< longest gradient; 0: as it is
  double dropout = 0.0;
  AdamWOptions adamw;
  WeightLimits limits;  ///< kept after every step, and at the start
  std::uint64_t seed = 0;
  int threads = 0;  ///< 0: all cores
};

/// A run of many steps that is kept in a folder.
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

}  // namespace lipscope
