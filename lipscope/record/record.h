#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lipscope/core/matrix.h"
#include "lipscope/io/number_format.h"
#include "lipscope/operators/norm.h"
#include "lipscope/record/known_by.h"
#include "lipscope/record/quantity.h"
#include "lipscope/record/scope.h"
#include "lipscope/report/growth.h"

namespace lipscope {

/// The tokens that a number speaks of.
struct RecordInput {
  /// "text", "ids", "file", "memory", "tensor", "gaussian" or "random ids".
  std::string from;
  std::optional<std::string> name = {};  ///< the file, as it was given
  /// Of the content of this very window or matrix, see fingerprint.h; of
  /// generated tokens, of what they are generated from.
  std::string sha256;
  std::optional<Index> offset = {};  ///< of its first token in the text
};

/// One number and all that it needs to be understood: the line of JSON that
/// every command writes. What is absent is null.
struct Record {
  std::string command;
  std::string model;  ///< the file, folder or recipe of the weights
  std::optional<std::string> model_sha256;
  std::optional<Index> layer;
  std::optional<Index> head;  ///< null here is "all" in JSON
  std::string map, kind, mask;
  std::optional<Norm> norm;
  Index n = 0, d = 0, sample = 0;
  std::optional<RecordInput> input = {};  ///< absent in JSON where nothing is
  /// Of the tokens; radius_max is that of the ball where the scope is one.
  std::optional<double> radius_max, radius_rms;
  /// What else was asked for, by name; belongs to the question.
  nlohmann::ordered_json parameters = nlohmann::ordered_json::object();

  /// What the sides enclose; nothing for a line that has no number, as the
  /// head of a figure.
  std::optional<Quantity> quantity = Quantity::constant;
  std::optional<double> lower;
  Evidence lower_is = Evidence::found;
  KnownBy lower_by;
  std::optional<double> upper, upper_log10;
  Evidence upper_is = Evidence::proved;
  KnownBy upper_by;
  /// Where `upper` is the smaller, it is what to_json writes as upper_whp, and
  /// details.upper_whp_by names its bound.
  std::optional<double> upper_whp, delta;
  std::optional<Scope> scope;

  /// A number that is no constant, as a loss is: what it is, with its unit,
  /// which belongs to the question, and the number. Absent in other records.
  std::string value_of;
  std::optional<double> value;

  std::optional<double> residual;
  std::optional<Index> steps;
  bool converged = true;
  /// What ended the work before it was done: "budget". Such a record is not
  /// converged, and --resume does its work again.
  std::string cut = {};
  std::optional<NumberFormat> dtype;
  std::uint64_t seed = 0;
  double seconds = 0.0;
  /// What else was found, by name.
  nlohmann::ordered_json details = nlohmann::ordered_json::object();
};

nlohmann::ordered_json to_json(const RecordInput& input);
nlohmann::ordered_json to_json(const Record& record);

/// How the constants of one map, measured from below at inputs, grow with n:
/// the line that follows a sweep.
struct GrowthRecord {
  /// Whose growth it is; n, sample, input and what was found are unused.
  Record of;
  std::vector<std::string> keys;  ///< of the records that are fitted
  GrowthFit fit;
  double confidence = 0.95;
};

nlohmann::ordered_json to_json(const GrowthRecord& record);

/// The numbers of a fit, into the JSON of a GrowthRecord.
void set_fit(nlohmann::ordered_json& json, const GrowthFit& fit);

/// Whether what holds with high probability is at most what holds for certain;
/// to_json sees to that.
bool says_no_less_than_certain(const nlohmann::ordered_json& record);

/// Whether the number from below stays below those from above.
bool consistent(const nlohmann::ordered_json& record);

}  // namespace lipscope
