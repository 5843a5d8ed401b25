// What each experiment of `reproduce` says of the claim that it makes again.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "lipscope/report/digits.h"
#include "lipscope/report/findings.h"
#include "lipscope/report/growth.h"
#include "lipscope/report/record_fields.h"

namespace lipscope {

using nlohmann::ordered_json;

namespace {

struct Claim {
  bool seen = false;
  std::string words;  ///< the number, and what was expected
};

std::string series_of(const ordered_json& r) {
  return text_of(inside(r, "parameters"), "series");
}

double x_of(const ordered_json& r) {
  return number_of(inside(r, "parameters"), "x").value_or(0.0);
}

bool begins(const std::string& text, const std::string& with) {
  return text.rfind(with, 0) == 0;
}

// the records of a curve, or of all curves whose name begins so
Findings curve(const Findings& records, const std::string& begin) {
  Findings found;
  for (const ordered_json& r : records)
    if (begins(series_of(r), begin)) found.push_back(r);
  return found;
}

// the point of a curve that is farthest to the right
const ordered_json* last(const Findings& points) {
  const ordered_json* best = nullptr;
  for (const ordered_json& r : points)
    if (!best || x_of(r) > x_of(*best)) best = &r;
  return best;
}

// The smallest measured value over its formula: what a formula gives from below
// must be reached.
std::optional<Claim> reaches_its_formula(const Findings& points) {
  double least = INFINITY;
  std::size_t count = 0;
  for (const ordered_json& r : points) {
    const auto formula = number_of(inside(r, "details"), "formula");
    const auto lower = number_of(r, "lower");
    if (!formula || !lower || *formula <= 0.0) continue;
    least = std::min(least, *lower / *formula);
    ++count;
  }
  if (count == 0) return std::nullopt;
  return Claim{least >= 1 - 1e-9,
               fmt::format("measured over the paper's formula is {} at least, "
                           "at {} (expected: 1 or more)",
                           six_digits(least), counted(count, "point"))};
}

std::optional<Claim> kim_tightness(const Findings& records) {
  double gap = -INFINITY;
  for (const ordered_json& r : curve(records, "closed form"))
    if (const auto l = number_of(r, "lower"), u = number_of(r, "upper"); l && u)
      gap = std::max(gap, *u - *l);
  if (std::isinf(gap)) return std::nullopt;
  return Claim{gap >= 0 && gap < 2,
               fmt::format("the input in closed form is {} below the bound at "
                           "most (expected: less than 2)",
                           six_digits(gap))};
}

std::optional<Claim> kim_inversion(const Findings& records) {
  double back = 0.0, wide = 0.0;
  bool any = false;
  std::map<std::string, Findings> curves;
  for (const ordered_json& r : records)
    if (number_of(r, "lower"))
      curves[text_of(inside(r, "parameters"), "experiment") + series_of(r)]
          .push_back(r);
  for (const auto& [name, points] : curves) {
    const ordered_json& end = *last(points);
    const double error = *number_of(end, "lower");
    any = true;
    if (!begins(series_of(end), "dot-product"))
      back = std::max(back, error);
    else if (number_of(inside(end, "parameters"), "width").value_or(0) > 1)
      wide = std::max(wide, error);
  }
  if (!any) return std::nullopt;
  return Claim{back <= 1e-10 && wide > 1e-10,
               fmt::format("L2 and Contractive-L2 come back to {} (expected: "
                           "1e-10 or less), dot-product attention on wide "
                           "inputs to {} (expected: more)",
                           six_digits(back), six_digits(wide))};
}

std::optional<Claim> dot_product_unbounded(const Findings& records) {
  double off = -1.0, largest = 0.0;
  bool kept = true;
  for (const ordered_json& r : records) {
    const auto found = number_of(inside(r, "details"), "J_11");
    const auto formula = number_of(inside(r, "details"), "formula");
    if (found && formula)
      off = std::max(off, std::abs(*found - *formula) / *formula);
    if (!begins(series_of(r), "L2")) continue;
    largest = std::max(largest, number_of(r, "lower").value_or(0.0));
    kept = kept && number_of(r, "lower") <= number_of(r, "upper");
  }
  if (off < 0) return std::nullopt;
  return Claim{off <= 1e-9 && kept,
               fmt::format("dot-product attention follows 2t^2/3 + 1/3 to {} "
                           "(expected: 1e-9 or less), L2 attention stays at {} "
                           "or less (expected: below its bound)",
                           six_digits(off), six_digits(largest))};
}

std::optional<Claim> large_radius(const Findings& records) {
  double off = -1.0;
  for (const ordered_json& limit : curve(records, "limit of ")) {
    const std::string input = series_of(limit).substr(9);
    Findings points = curve(records, input);
    std::erase_if(points, [&](const auto& r) { return series_of(r) != input; });
    if (points.empty()) continue;
    const auto end = number_of(*last(points), "lower");
    const auto expected = number_of(limit, "lower");
    if (end && expected)
      off = std::max(off, std::abs(*end - *expected) / *expected);
  }
  if (off < 0) return std::nullopt;
  return Claim{off <= 1e-5,
               fmt::format("the ends are {} from the limits, relatively "
                           "(expected: 1e-5 or less)",
                           six_digits(off))};
}

std::optional<Claim> layer_norm(const Findings& records) {
  // the worst slope between the two largest inputs, as logarithms
  std::map<std::string, std::map<double, double>> without;
  bool kept = true;
  for (const ordered_json& r : records) {
    const auto lower = number_of(r, "lower");
    if (!lower) continue;
    const std::string series = series_of(r);
    if (begins(series, "without norm, family"))
      without[text_of(inside(r, "parameters"), "experiment") + series]
             [x_of(r)] = *lower;
    if (begins(series, "with norm, over all inputs"))
      if (const std::optional<UpperNumber> above = upper_of(r))
        kept = kept && std::log10(*lower) <= above->log10;
  }
  double slope = 2.0;
  bool any = false;
  for (const auto& [name, points] : without) {
    if (points.size() < 2) continue;
    const auto end = std::prev(points.end()), before = std::prev(end);
    const double s = std::log(end->second / before->second) /
                     std::log(end->first / before->first);
    if (std::abs(s - 2) >= std::abs(slope - 2)) slope = s;
    any = true;
  }
  if (!any) return std::nullopt;
  return Claim{std::abs(slope - 2) < 0.1 && kept,
               fmt::format("without the norm the constant grows as t^{:.3f} "
                           "(expected: t^2), with it {} its bound over all "
                           "inputs (expected: below)",
                           slope, kept ? "it stays below" : "it exceeds")};
}

std::optional<Claim> mass_splitting(const Findings& records) {
  double least = INFINITY;
  std::map<double, std::map<std::string, double>> at;
  for (const ordered_json& r : records)
    if (text_of(inside(r, "parameters"), "experiment") == "mass-splitting")
      if (const auto lower = number_of(r, "lower"))
        at[x_of(r)][series_of(r)] = *lower;
  for (const auto& [w, values] : at)
    if (values.contains("whole") && values.contains("cut"))
      least = std::min(least, values.at("cut") / values.at("whole"));
  if (std::isinf(least)) return std::nullopt;
  return Claim{least > 1.0,
               fmt::format("a token that may be cut reacts {} times as much at "
                           "least (expected: more than 1)",
                           six_digits(least))};
}

// losses of models by depth and by name
std::map<double, std::map<std::string, double>> losses(
    const Findings& records, const std::string& experiment) {
  std::map<double, std::map<std::string, double>> found;
  for (const ordered_json& r : records)
    if (text_of(inside(r, "parameters"), "experiment") == experiment)
      if (const auto value = number_of(r, "value"))
        found[x_of(r)][series_of(r)] = *value;
  return found;
}

std::optional<Claim> kim_charlm(const Findings& records) {
  const std::string by_coordinate = "contractive-l2 by coordinate";
  double apart = -INFINITY, fall = 0.0;
  bool worst = true;
  std::optional<double> shallowest;
  for (const auto& [depth, loss] : losses(records, "kim-charlm")) {
    if (loss.contains(by_coordinate)) {
      if (!shallowest) shallowest = loss.at(by_coordinate);
      fall = *shallowest - loss.at(by_coordinate);
    }
    if (!loss.contains("dot") || !loss.contains("l2-untied") ||
        !loss.contains("l2") || !loss.contains("contractive-l2"))
      continue;
    apart = std::max(apart, loss.at("l2-untied") - loss.at("dot"));
    worst = worst && loss.at("contractive-l2") >= loss.at("l2");
  }
  if (std::isinf(apart)) return std::nullopt;
  return Claim{
      apart <= 0.1 && worst && fall > 0.0,
      fmt::format("untied L2 is {:+.3f} nats from dot-product at most "
                  "(expected: 0.1 or less), Contractive-L2 is {} than L2 "
                  "(expected: worse), and by coordinate it gains {:.3f} from "
                  "the least to the most layers (expected: more than 0)",
                  apart, worst ? "worse" : "not always worse", fall)};
}

std::optional<Claim> kim_stability(const Findings& records) {
  const auto all = losses(records, "kim-stability");
  if (all.empty()) return std::nullopt;
  const auto& [depth, loss] = *all.rbegin();
  if (!loss.contains("dot") || !loss.contains("l2") ||
      !loss.contains("1-grams"))
    return std::nullopt;
  const double learnt = loss.at("1-grams") - 0.1;
  return Claim{loss.at("dot") >= learnt && loss.at("l2") < learnt,
               fmt::format("at {} layers dot-product ends at {:.3f} (expected: "
                           "{:.3f} or more, not learnt), L2 at {:.3f} "
                           "(expected: less)",
                           depth, loss.at("dot"), learnt, loss.at("l2"))};
}

// Beside each model of Newhouse25's architecture the least loss of those whose
// proved constant is no larger; and what the identities do.
std::optional<Claim> newhouse_shakespeare(const Findings& records) {
  std::map<double, double> ours, theirs;  // least loss by constant
  double identities = 0.0;
  for (const ordered_json& r : records) {
    const std::string figure = text_of(inside(r, "parameters"), "experiment");
    if (figure == "newhouse-shakespeare, identities")
      identities = std::max(identities, number_of(r, "lower").value_or(0.0));
    const auto value = number_of(r, "value");
    const auto constant = number_of(inside(r, "details"), "proved_rms");
    if (figure != "newhouse-shakespeare" || !value || !constant) continue;
    const bool is_theirs = series_of(r).find("Newhouse25") == 0;
    auto& of = is_theirs ? theirs : ours;
    const auto known = of.find(*constant);
    of[*constant] =
        known == of.end() ? *value : std::min(known->second, *value);
  }
  bool below = true;
  std::string shown;
  for (const auto& [constant, loss] : theirs) {
    double best = INFINITY;
    for (const auto& [at, value] : ours)
      if (at <= 1.01 * constant) best = std::min(best, value);
    if (std::isinf(best)) continue;
    below = below && best < loss;
    shown += fmt::format("{}{:.3f} against {:.3f} nats at {:.4g}",
                         shown.empty() ? "" : ", ", best, loss, constant);
  }
  if (shown.empty()) return std::nullopt;
  return Claim{
      below,
      fmt::format(
          "models with a promise against the "
          "architecture of Newhouse25, at most its "
          "proved constant: {} (expected: less); attention with identities "
          "for weights, of which its formula says 1, "
          "reaches {}",
          shown, six_digits(identities))};
}

// How √‖Jᵀf‖, which the script that was published with the paper computes in
// place of the constant, grows in the trained layers.
std::string growth_of_script_values(const Findings& records) {
  std::map<std::string, std::vector<GrowthPoint>> layers;
  for (const ordered_json& r : records) {
    const auto value = number_of(inside(r, "details"), "script_value");
    const auto n = number_of(r, "n");
    if (value && n && text_of(r, "model").find("random") == std::string::npos)
      layers[series_of(r)].push_back({static_cast<Index>(*n), *value});
  }
  double least = INFINITY, most = -INFINITY;
  for (const auto& [layer, points] : layers)
    if (const std::optional<GrowthFit> fit = fit_growth(points)) {
      least = std::min(least, fit->exponent);
      most = std::max(most, fit->exponent);
    }
  if (std::isinf(least)) return "";
  return fmt::format(
      "; |J^T f|^(1/2), which the script of the paper computes in place of the "
      "constant, grows as n^{:.3f} to n^{:.3f} in the trained layers",
      least, most);
}

std::optional<Claim> castin_real(const Findings& records) {
  double trained = -INFINITY, untrained = -INFINITY;
  for (const ordered_json& r : records) {
    const auto exponent = number_of(r, "exponent");
    if (!exponent) continue;
    const bool random = text_of(r, "model").find("random") != std::string::npos;
    (random ? untrained : trained) =
        std::max(random ? untrained : trained, *exponent);
  }
  if (std::isinf(trained) && std::isinf(untrained)) return std::nullopt;
  std::string words;
  if (std::isfinite(trained))
    words += fmt::format(
        "trained layers grow as n^{:.3f} at most (expected: "
        "more than n^0.1)",
        trained);
  if (std::isfinite(untrained))
    words += fmt::format(
        "{}untrained ones as n^{:.3f} (expected: n^0.1 or "
        "less)",
        words.empty() ? "" : ", ", untrained);
  return Claim{(std::isinf(trained) || trained > 0.1) &&
                   (std::isinf(untrained) || untrained <= 0.1),
               words + growth_of_script_values(records)};
}

std::optional<Claim> robustness(const Findings& records) {
  double best = -INFINITY;
  std::string name;
  bool kept = true;
  for (const ordered_json& r : records) {
    const auto lower = number_of(r, "lower"), upper = number_of(r, "upper");
    kept = kept && (!lower || !upper || *lower <= *upper);
    const auto middle = number_of(inside(r, "details"), "median_proved_log10");
    if (!middle || *middle <= best) continue;
    best = *middle;
    name = series_of(r);
  }
  if (name.empty()) return std::nullopt;
  return Claim{kept, fmt::format("proved shares stay {} attacked ones "
                                 "(expected: below); the largest median radius "
                                 "that is proved is 10^{:.2f} ({})",
                                 kept ? "below" : "NOT below", best, name)};
}

const std::map<std::string,
               std::function<std::optional<Claim>(const Findings&)>>
    claims = {{"kim-tightness", kim_tightness},
              {"kim-inversion", kim_inversion},
              {"kim-charlm", kim_charlm},
              {"kim-stability", kim_stability},
              {"dot-product-unbounded", dot_product_unbounded},
              {"castin-adversarial",
               [](const Findings& r) {
                 return reaches_its_formula(curve(r, "construction"));
               }},
              {"castin-real", castin_real},
              {"castin-meanfield",
               [](const Findings& r) {
                 return reaches_its_formula(curve(r, "masses of the paper"));
               }},
              {"large-radius", large_radius},
              {"layer-norm", layer_norm},
              {"mass-splitting", mass_splitting},
              {"newhouse-shakespeare", newhouse_shakespeare},
              {"robustness-histogram", robustness}};

}  // namespace

std::string reproduced_finding(const std::string& experiment,
                               const Findings& records) {
  const auto at = claims.find(experiment);
  if (at == claims.end() || records.empty()) return "";
  const std::optional<Claim> claim = at->second(records);
  if (!claim)
    return fmt::format(
        "Answer: nothing to hold against the claim of {} in these rows.",
        experiment);
  return fmt::format("Answer: {}: {}.",
                     claim->seen ? "reproduced" : "NOT reproduced",
                     claim->words);
}

}  // namespace lipscope
