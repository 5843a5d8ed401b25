#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "lipscope/core/matrix.h"
#include "lipscope/report/growth.h"

namespace lipscope::cli {

/// One number and all that it needs to be understood: the line of JSON that
/// every command writes. What is absent is null.
struct Record {
  std::string command;
  std::string model;  ///< the file, folder or recipe of the weights
  std::optional<std::string> model_sha256;
  std::optional<Index> layer;
  std::optional<Index> head;  ///< null here is "all" in JSON
  std::string map, kind, mask, norm;
  Index n = 0, d = 0, sample = 0;
  /// Of the tokens; radius_max is that of the ball where the scope is one.
  std::optional<double> radius_max, radius_rms;
  /// What else was asked for, by name; belongs to the question.
  nlohmann::ordered_json parameters = nlohmann::ordered_json::object();

  std::optional<double> lower;
  std::string lower_by;
  std::optional<double> upper, upper_log10;
  std::string upper_by;
  std::optional<double> upper_whp, delta;
  std::string scope;

  /// A number that is no constant, as a loss is: what it is, with its unit,
  /// which belongs to the question, and the number. Absent in other records.
  std::string value_of;
  std::optional<double> value;

  std::optional<double> residual;
  std::optional<Index> steps;
  bool converged = true;
  std::string dtype;
  std::uint64_t seed = 0;
  double seconds = 0.0;
  /// What else was found, by name.
  nlohmann::ordered_json details = nlohmann::ordered_json::object();
};

nlohmann::ordered_json to_json(const Record& record);

/// How the constants of one map, measured from below at inputs, grow with n:
/// the line that follows a sweep.
struct GrowthRecord {
  Record of;  ///< whose growth it is; n, sample and what was found are unused
  GrowthFit fit;
  double confidence = 0.95;
};

nlohmann::ordered_json to_json(const GrowthRecord& record);

/// What was asked for, without what was found: two records with the same
/// question are the same piece of work, and --resume does it once.
std::string question_of(const nlohmann::ordered_json& record);

/// Whether the number from below stays below those from above.
bool consistent(const nlohmann::ordered_json& record);

}  // namespace lipscope::cli
