#include "lipscope/cli/record.h"

#include <cmath>

#include "lipscope/core/errors.h"
#include "lipscope/core/version.h"

namespace lipscope::cli {
namespace {

using nlohmann::ordered_json;

template <class T>
ordered_json or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json or_null(const std::string& text) {
  return text.empty() ? ordered_json(nullptr) : ordered_json(text);
}

// JSON has no NaN or infinity, and neither has a report
void require_finite(const char* what, const std::optional<double>& value) {
  if (value && !std::isfinite(*value))
    throw RunError(fmt::format("{} came out as {}", what, *value));
}

}  // namespace

ordered_json to_json(const Record& r) {
  require_finite("lower", r.lower);
  require_finite("upper", r.upper);
  require_finite("upper_whp", r.upper_whp);
  require_finite("residual", r.residual);
  return {{"schema", 1},
          {"command", r.command},
          {"version", version()},
          {"model", r.model},
          {"model_sha256", or_null(r.model_sha256)},
          {"layer", or_null(r.layer)},
          {"head", r.head ? ordered_json(*r.head) : ordered_json("all")},
          {"map", r.map},
          {"kind", r.kind},
          {"mask", r.mask},
          {"norm", r.norm},
          {"n", r.n},
          {"d", r.d},
          {"sample", r.sample},
          {"radius_max", r.radius_max},
          {"radius_rms", r.radius_rms},
          {"lower", or_null(r.lower)},
          {"lower_by", or_null(r.lower_by)},
          {"upper", or_null(r.upper)},
          {"upper_log10", or_null(r.upper_log10)},
          {"upper_by", or_null(r.upper_by)},
          {"upper_whp", or_null(r.upper_whp)},
          {"delta", or_null(r.delta)},
          {"scope", r.scope},
          {"residual", or_null(r.residual)},
          {"steps", or_null(r.steps)},
          {"status", r.converged ? "converged" : "not-converged"},
          {"dtype", r.dtype},
          {"seed", r.seed},
          {"seconds", r.seconds}};
}

ordered_json to_json(const GrowthRecord& g) {
  const Record& r = g.of;
  return {{"schema", 1},
          {"command", "growth"},
          {"version", version()},
          {"model", r.model},
          {"model_sha256", or_null(r.model_sha256)},
          {"layer", or_null(r.layer)},
          {"head", r.head ? ordered_json(*r.head) : ordered_json("all")},
          {"map", r.map},
          {"kind", r.kind},
          {"mask", r.mask},
          {"norm", r.norm},
          {"d", r.d},
          {"points", g.fit.points},
          {"exponent", g.fit.exponent},
          {"exponent_low", g.fit.low},
          {"exponent_high", g.fit.high},
          {"confidence", g.confidence},
          {"constant", g.fit.constant},
          {"r_squared", g.fit.r_squared},
          {"radius_correlation", or_null(g.fit.radius_correlation)},
          {"dtype", r.dtype},
          {"seed", r.seed}};
}

std::string question_of(const ordered_json& record) {
  ordered_json question;
  for (const char* field :
       {"schema",     "command", "version", "model",  "model_sha256",
        "layer",      "head",    "map",     "kind",   "mask",
        "norm",       "n",       "d",       "sample", "radius_max",
        "radius_rms", "delta",   "scope",   "dtype",  "seed"})
    question[field] =
        record.contains(field) ? record[field] : ordered_json(nullptr);
  return question.dump();
}

bool consistent(const Record& r) {
  if (!r.lower) return true;
  return (!r.upper || *r.lower <= *r.upper) &&
         (!r.upper_whp || *r.lower <= *r.upper_whp) &&
         (!r.upper_log10 || std::log10(*r.lower) <= *r.upper_log10);
}

}  // namespace lipscope::cli
