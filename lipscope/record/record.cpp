#include "lipscope/record/record.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lipscope/core/errors.h"
#include "lipscope/core/version.h"
#include "lipscope/io/json_fields.h"
#include "lipscope/record/fingerprint.h"

namespace lipscope {
namespace {

using nlohmann::ordered_json;

template <class T>
ordered_json or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json or_null(const std::string& text) {
  return text.empty() ? ordered_json(nullptr) : ordered_json(text);
}

template <class Named>
ordered_json name_or_null(const std::optional<Named>& value) {
  return value ? ordered_json(name_of(*value)) : ordered_json(nullptr);
}

// the heads of figures speak of no inputs, and say so by no words
std::string words_of(const std::optional<Scope>& scope) {
  return scope ? name_of(*scope) : "";
}

// what is said of a side that is there
ordered_json if_there(bool there, Evidence is) {
  return there ? ordered_json(name_of(is)) : ordered_json(nullptr);
}

// JSON has no NaN or infinity, and neither has a report
void require_finite(const char* what, const std::optional<double>& value) {
  if (value && !std::isfinite(*value))
    throw RunError(fmt::format("{} came out as {}", what, *value));
}

// which map of which weights, as every record begins
ordered_json head_of(const Record& r, const std::string& command) {
  return {{"schema", 2},
          {"command", command},
          {"version", version()},
          {"commit", commit()},
          {"model", r.model},
          {"model_sha256", or_null(r.model_sha256)},
          {"layer", or_null(r.layer)},
          {"head", r.head ? ordered_json(*r.head) : ordered_json("all")},
          {"map", or_null(r.map)},
          {"kind", or_null(r.kind)},
          {"mask", or_null(r.mask)},
          {"norm", name_or_null(r.norm)},
          {"quantity", name_or_null(r.quantity)}};
}

// What holds with high probability: what holds for certain does so as well, and
// where it is the smaller number it is the better claim.
struct WithHighProbability {
  std::optional<double> value;
  bool certain = false;
};

WithHighProbability with_high_probability(const Record& r) {
  if (r.upper && r.upper_whp && *r.upper < *r.upper_whp) return {r.upper, true};
  return {r.upper_whp, false};
}

}  // namespace

ordered_json to_json(const RecordInput& input) {
  return {{"from", input.from},
          {"name", or_null(input.name)},
          {"sha256", input.sha256},
          {"offset", or_null(input.offset)}};
}

ordered_json to_json(const Record& r) {
  const WithHighProbability whp = with_high_probability(r);
  for (const auto& [name, value] : {std::pair("radius_max", r.radius_max),
                                    {"radius_rms", r.radius_rms},
                                    {"lower", r.lower},
                                    {"upper", r.upper},
                                    {"upper_log10", r.upper_log10},
                                    {"upper_whp", r.upper_whp},
                                    {"value", r.value},
                                    {"residual", r.residual}})
    require_finite(name, value);
  ordered_json json = head_of(r, r.command);
  json.update({{"n", r.n}, {"d", r.d}, {"sample", r.sample}});
  if (r.input) json["input"] = to_json(*r.input);
  json.update(
      {{"radius_max", or_null(r.radius_max)},
       {"radius_rms", or_null(r.radius_rms)},
       {"lower", or_null(r.lower)},
       {"lower_by", or_null(r.lower_by.name())},
       {"lower_is", if_there(r.lower.has_value(), r.lower_is)},
       {"upper", or_null(r.upper)},
       {"upper_log10", or_null(r.upper_log10)},
       {"upper_by", or_null(r.upper_by.name())},
       {"upper_is", if_there(r.upper || r.upper_log10, r.upper_is)},
       {"upper_whp", or_null(whp.value)},
       {"delta", or_null(r.delta)},
       {"scope", words_of(r.scope)},
       {"residual", or_null(r.residual)},
       {"steps", or_null(r.steps)},
       {"status", r.converged && r.cut.empty() ? "converged" : "not-converged"},
       {"dtype", name_or_null(r.dtype)},
       {"seed", r.seed},
       {"seconds", r.seconds}});
  if (!r.cut.empty()) json["cut"] = r.cut;
  if (!r.value_of.empty()) {
    json["value_of"] = r.value_of;
    json["value"] = or_null(r.value);
  }
  if (!r.parameters.empty()) json["parameters"] = r.parameters;
  if (!r.details.empty()) json["details"] = r.details;
  if (whp.certain) json["details"]["upper_whp_by"] = r.upper_by.name();
  return json;
}

ordered_json to_json(const GrowthRecord& g) {
  ordered_json json = head_of(g.of, "growth");
  json.update({{"d", g.of.d},
               {"fits", "lower"},
               {"scope", words_of(g.of.scope)},
               {"points", 0},
               {"exponent", 0.0},
               {"exponent_low", 0.0},
               {"exponent_high", 0.0},
               {"confidence", g.confidence},
               {"constant", 0.0},
               {"r_squared", 0.0},
               {"radius_correlation", nullptr},
               {"dtype", name_or_null(g.of.dtype)},
               {"seed", g.of.seed}});
  set_fit(json, g.fit);
  json["parameters"] = g.of.parameters;
  // a fit over other points is another question
  std::vector<std::string> keys = g.keys;
  std::sort(keys.begin(), keys.end());
  json["parameters"]["points_sha256"] = fingerprint(keys);
  return json;
}

void set_fit(ordered_json& json, const GrowthFit& fit) {
  json["points"] = fit.points;
  json["exponent"] = fit.exponent;
  json["exponent_low"] = fit.low;
  json["exponent_high"] = fit.high;
  json["constant"] = fit.constant;
  json["r_squared"] = fit.r_squared;
  json["radius_correlation"] = or_null(fit.radius_correlation);
}

bool says_no_less_than_certain(const ordered_json& record) {
  const auto upper = number_in(record, "upper");
  const auto whp = number_in(record, "upper_whp");
  return !upper || !whp || *whp <= *upper;
}

bool consistent(const ordered_json& record) {
  const auto number = [&](const char* field) {
    return number_in(record, field);
  };
  const auto lower = number("lower");
  if (!lower) return true;
  const auto below = [](double x, const std::optional<double>& bound) {
    return !bound || x <= *bound;
  };
  return below(*lower, number("upper")) && below(*lower, number("upper_whp")) &&
         below(std::log10(*lower), number("upper_log10"));
}

}  // namespace lipscope
