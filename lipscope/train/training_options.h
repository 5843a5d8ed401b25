#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lipscope/core/gemm.h"
#include "lipscope/train/singular_values.h"
#include "lipscope/train/training_report.h"

/// How a model learns, as the user says it.
namespace lipscope {

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0.01;  ///< of matrices; not of tables, gains and biases
  int threads = 0;             ///< 0: all cores
};

/// What makes steps of gradients.
enum class Optimizer {
  adamw,  ///< train/adamw.h, for all tensors
  muon    ///< train/muon.h, for matrices; AdamW for all others
};

inline constexpr Optimizer all_optimizers[] = {Optimizer::adamw,
                                               Optimizer::muon};

std::string name_of(Optimizer optimizer);  ///< "adamw", "muon"

struct MuonOptions {
  /// What a step is multiplied with, besides the rate. Without it a step has
  /// singular values near 1.
  enum class Scale {
    one,   ///< 1
    shape  ///< √max(1, out/in) for a matrix [in×out]
  };

  double rate = 0.02;  ///< the largest; it goes as Adam's does
  double momentum = 0.95;
  bool nesterov = true;
  int steps = 5;  ///< of Newton and Schulz
  Scale scale = Scale::one;
  double weight_decay = 0.0;
  /// Names of matrices that AdamW moves nevertheless.
  std::vector<std::string> by_adamw = {};
  Precision products = Precision::high;
  int threads = 0;  ///< 0: all cores
};

/// How the rate goes: a linear warm-up over the first `warmup` steps, then as
/// 1/√t, or as it is, or down on a line that is 0 one step after the last.
struct Schedule {
  enum class After { inverse_sqrt, fixed, linear };

  double rate = 1e-3;  ///< the largest
  Index warmup = 100;
  After after = After::inverse_sqrt;
  Index steps = 0;  ///< of the whole run; linear alone asks for it

  double at(Index t) const;  ///< of step t = 1, 2, …
};

inline constexpr Schedule::After all_schedules[] = {
    Schedule::After::inverse_sqrt, Schedule::After::fixed,
    Schedule::After::linear};

std::string name_of(Schedule::After after);  ///< "inverse-sqrt", …

/// Which norms a rule for singular values keeps matrices at.
enum class MatrixLimits {
  one,        ///< 1, and what keep_within says of heads that compare
  newhouse25  ///< train/newhouse25_limits.h
};

inline constexpr MatrixLimits all_matrix_limits[] = {MatrixLimits::one,
                                                     MatrixLimits::newhouse25};

std::string name_of(MatrixLimits limits);  ///< "one", "newhouse25"

struct WeightLimits {
  /// The certified constant, input of layer 0 → logits (see
  /// theory/stack_constant.h), is at most this,
  std::optional<double> lipschitz;
  Norm norm = Norm::two;  ///< in this norm; or in the token norm
  /// ‖W‖₂ of every matrix is at most this; 1 is spectral normalisation.
  std::optional<double> spectral;
  /// No embedded character is longer than this.
  std::optional<double> longest_token = {};
  /// How singular values of all matrices are kept; see keep_within.
  SingularValues rule = SingularValues::free;
  MatrixLimits matrices = MatrixLimits::one;  ///< under a rule
  /// ‖W_QW_Kᵀ‖R²/√k of a head that compares, under a rule: about how far its
  /// scores can differ from 0. With rotary positions ‖W_Q‖‖W_K‖R²/√k.
  double scores = 1.0;
};

/// A step.
struct TrainingOptions {
  Index batch = 32;  ///< sequences a step, each as long as the context
  Schedule schedule;
  double clip = 1.0;  ///< longest gradient; 0: as it is
  double dropout = 0.0;
  Optimizer optimizer = Optimizer::adamw;
  AdamWOptions adamw;
  MuonOptions muon;
  WeightLimits limits;        ///< kept after every step, and at the start
  bool zero_outputs = false;  ///< see train/zero_outputs.h
  Precision products = Precision::high;  ///< of the layers' large matrices
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
