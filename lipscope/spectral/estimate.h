#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "lipscope/operators/common_shift.h"
#include "lipscope/operators/map.h"
#include "lipscope/spectral/norm_method.h"

namespace lipscope {

struct MeasureOptions {
  double tolerance = 1e-5;  ///< on the relative residual ‖JᵀJ v − σ² v‖/σ²
  int max_steps = 300;  ///< of each iteration
  /// If above 1: go on until upper_whp ≤ enclose · lower as well.
  double enclose = 0.0;
  /// Without it there is no upper_whp, and no product is spent on it. Small
  /// Jacobians, which are formed, have both sides in any case.
  bool from_above = true;
  double delta = 1e-10;    ///< probability with which upper_whp may fail
  std::uint64_t seed = 0;  ///< of the starting vectors and probes
  int threads = 0;         ///< of the vector work; 0: all cores
  /// Called after every step with the number of steps so far; false ends the
  /// search, which is an outcome and not an error. May be empty.
  std::function<bool(int step)> keep_going = {};
  /// Jacobians with at most this many columns are formed and decomposed.
  Index dense_limit = 512;
  /// Bytes that the vectors of an iteration may take for each sequence; 0: any
  /// number. What it decides is memory_plan.
  std::uint64_t memory = 0;
  /// x holds this many sequences of equal length, one under another, and the
  /// maps act on each by itself.
  Index sequences = 1;
  /// What whoever calls knows of the Jacobian of `search` beforehand, as a
  /// place to start (of attention: common_shift_of). May be empty.
  CommonShiftAt<float> common_shift = {};
  /// Of an operator by itself: a direction that it may stretch much, of any
  /// length, as such a place to start. It must not depend on the random numbers
  /// of `seed`. May be empty.
  Vector likely = {};
};

/// All that MeasureOptions::memory can change in the measurement of one
/// sequence: after how many steps its iterations start again from the best
/// direction found. 0: they never do.
///
/// It depends on the sequence alone, whatever is measured beside it. What
/// AttentionOptions::memory decides, whether attention weights are kept or
/// rebuilt, changes no bit of any number and is no part of it.
struct MemoryPlan {
  Index steps_f32 = 0, steps_f64 = 0;
  bool operator==(const MemoryPlan&) const = default;
};

/// The plan for a sequence of `unknowns` = n·d numbers. Of the options it reads
/// max_steps, dense_limit and memory.
MemoryPlan memory_plan(Index unknowns, const MeasureOptions& options);

/// The local Lipschitz constant ‖J(x)‖₂ of a map at a point, from below and,
/// where that can be said, from above.
struct Measurement {
  double lower = 0.0;  ///< ‖J v‖ for the unit `direction` v, in f64
  NormMethod lower_by = NormMethod::golub_kahan_f32;
  double residual = 0.0;  ///< ‖JᵀJ v − σ² v‖/σ² at σ = lower, in f64
  int steps = 0;          ///< of all iterations, or columns formed
  /// residual ≤ tolerance and, if asked for, upper_whp ≤ enclose · lower.
  bool converged = false;
  Vector direction;  ///< v, the witness of lower
  Vector image;      ///< J v, in f64
  /// ‖J‖₂ ≤ upper, always: where J was formed, by NormMethod::dense_gram.
  std::optional<double> upper;
  /// ‖J‖₂ ≤ upper_whp except with probability delta over the random numbers
  /// drawn. Never raised to lower: if it is below, something is wrong, and the
  /// reader must see it.
  std::optional<double> upper_whp;
  double delta = 0.0;
};

/// ‖J(x)‖₂ of the map that `search` is in f32 and `witness` in f64: searched
/// for in f32, testified in f64.
///
/// Up to dense_limit unknowns, J is formed in f64 and `upper` is that of
/// dense_norm times 1 + 1e-9 for the rounding in forming J. Beyond, Golub–Kahan
/// in f32 finds a direction v; σ = ‖J v‖/‖v‖ and its residual come from J in
/// f64. If that residual is above the tolerance, Golub–Kahan goes on from v in
/// f64.
///
/// It starts from a random vector. Where a likely direction is known, of a
/// common shift or from whoever calls, a vector of that direction and of about
/// the length of the random one is added: as good as the better of the two,
/// nearly, and no component is missing from the start.
///
/// upper_whp must not take the f32 operator J̃ for J. With E = J − J̃,
///
///   ‖J‖ ≤ ‖J̃‖ + ‖E‖ ≤ factor · σ̂₃₂ (1 + 64·2⁻²⁴) + drift,
///
/// with the factor of enclosure_factor, a slack for rounding in the recurrence,
/// and the bound of Drift on ‖E‖ from three products in f64, or more where a
/// close enclosure is asked for. If that leaves more than `enclose` allows, f32
/// is no good here and the enclosure is made in f64.
Measurement measure_norm(const Map<float>& search, const Map<double>& witness,
                         const Matrix& x, const MeasureOptions& options = {});

/// The same for each of options.sequences sequences, through products that
/// serve all of them. Each upper_whp may fail with probability delta. What is
/// found for a sequence has the same bits as if it were measured alone, if the
/// maps and their Jacobians treat a sequence so; those of this library do.
std::vector<Measurement> measure_norms(const Map<float>& search,
                                       const Map<double>& witness,
                                       const Matrix& x,
                                       const MeasureOptions& options);

/// The same of an operator that is there, of any shape [rows×cols]: `search` is
/// it in f32 and `witness` in f64. It is formed if it has at most dense_limit
/// columns and 4 dense_limit² entries. There are no sequences and no common
/// shift; options.likely says where to start.
Measurement measure_norm(const LinearOperator<float>& search,
                         const LinearOperator<double>& witness,
                         const MeasureOptions& options = {});

/// The same with all products in f64. One statement may fail here, and it has
/// all of delta.
Measurement measure_norm(const LinearOperator<double>& a,
                         const MeasureOptions& options = {});

}  // namespace lipscope
