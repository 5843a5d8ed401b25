#include "lipscope/report/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <set>

#include "lipscope/report/digits.h"
#include "lipscope/report/median.h"
#include "lipscope/report/record_fields.h"

namespace lipscope {

using nlohmann::ordered_json;

namespace {

// those that have a number there, the largest first; equal ones as they came
Findings largest_first(const Findings& records, const std::string& field) {
  Findings with;
  for (const ordered_json& r : records)
    if (number_of(r, field)) with.push_back(r);
  std::stable_sort(with.begin(), with.end(),
                   [&](const ordered_json& a, const ordered_json& b) {
                     return *number_of(a, field) > *number_of(b, field);
                   });
  return with;
}

// what is known from above of a measured constant
std::string from_above(const ordered_json& record) {
  const std::optional<UpperNumber> certain = upper_of(record);
  const auto likely = number_of(record, "upper_whp");
  if (likely && (!certain || std::log10(*likely) < certain->log10)) {
    const auto delta = number_of(record, "delta");
    return fmt::format(
        ", and at most {} times{}", six_digits_above(*likely),
        delta ? fmt::format(" but for a chance of {:.0e}", *delta) : "");
  }
  if (!certain) return "; nothing is proved from above";
  const std::string by = text_of(record, "upper_by");
  return fmt::format(", and at most {} times{}", certain->words,
                     by.empty() ? "" : " (" + by + ")");
}

}  // namespace

std::string measured_finding(const Findings& records) {
  const Findings sorted = largest_first(records, "lower");
  if (sorted.empty()) return "";
  const ordered_json& most = sorted.front();
  std::set<std::string> parts, alike;
  for (const ordered_json& r : sorted) {
    parts.insert(whose(r));
    if (number_of(r, "lower") == number_of(most, "lower"))
      alike.insert(whose(r));
  }
  const auto n = number_of(most, "n");
  std::string text = fmt::format(
      "Answer: {} reacts{}{}: a small change comes out {} times as large{}",
      whose(most), parts.size() > 1 || sorted.size() > 1 ? " most" : "",
      n ? fmt::format(", at n = {}", *n) : "",
      six_digits_below(*number_of(most, "lower")), from_above(most));
  if (alike.size() > 1)
    text += fmt::format("; {} as strongly",
                        alike.size() == 2
                            ? "one other part just"
                            : fmt::format("{} others just", alike.size() - 1));
  return text + "." + not_converged(records, "measurement");
}

std::string bounds_finding(const Findings& records) {
  Findings best, witnesses;
  for (const ordered_json& r : records) {
    if (number_of(r, "lower")) witnesses.push_back(r);
    const auto mark = inside(r, "details").find("best");
    if (mark != inside(r, "details").end() && *mark == true && upper_of(r))
      best.push_back(r);
  }
  if (best.empty()) {
    const Findings sorted = largest_first(witnesses, "lower");
    if (sorted.empty()) return "";
    const auto radius = number_of(sorted.front(), "radius_max");
    return fmt::format(
        "Answer: no bound holds over all inputs: {} reacts {} times at tokens "
        "of norm {}, and ever more strongly farther out.",
        whose(sorted.front()),
        six_digits_below(*number_of(sorted.front(), "lower")),
        radius ? six_digits(*radius) : "unknown");
  }
  const auto over = [](const ordered_json& r) {
    const auto n = number_of(r, "n"), radius = number_of(r, "radius_max");
    const std::string tokens =
        n ? fmt::format("any {} tokens", *n) : std::string("any tokens");
    if (text_of(r, "scope") != "ball") return tokens + ", anywhere";
    if (inside(r, "parameters").contains("tokens"))
      return tokens + " that a norm layer lets through";
    return radius ? fmt::format("{} within {}", tokens, six_digits(*radius))
                  : tokens + " in the ball";
  };
  const auto [least, most] = std::minmax_element(
      best.begin(), best.end(), [](const ordered_json& a, const auto& b) {
        return upper_of(a)->log10 < upper_of(b)->log10;
      });
  std::map<std::string, std::size_t> wins;
  for (const ordered_json& r : best) ++wins[text_of(r, "upper_by")];
  if (best.size() == 1)
    return fmt::format(
        "Answer: {} is the best of {}: at most {} times as large, for {}.",
        text_of(*most, "upper_by"), counted(records.size(), "bound"),
        upper_of(*most)->words, over(*most));
  std::string names;
  for (const auto& [name, count] : wins)
    names += fmt::format("{}{} ({} of {})", names.empty() ? "" : ", ", name,
                         count, best.size());
  return fmt::format(
      "Answer: the best bounds go from {} ({}) to {} ({}); best is {}.",
      upper_of(*least)->words, where(*least), upper_of(*most)->words,
      where(*most), names);
}

std::string searched_finding(const Findings& records) {
  Findings best;
  std::size_t cut = 0;
  for (const ordered_json& r : records) {
    if (text_of(inside(r, "parameters"), "of") != "best") continue;
    best.push_back(r);
    cut += text_of(r, "status") == "not-converged";
  }
  const Findings sorted = largest_first(best, "lower");
  if (sorted.empty()) return "";
  const ordered_json& most = sorted.front();
  const double lower = *number_of(most, "lower");
  const std::string start = text_of(inside(most, "details"), "start");
  std::string text =
      fmt::format("Answer: the largest constant found is {} ({}{})",
                  six_digits_below(lower), where(most),
                  start.empty() ? "" : ", from start '" + start + "'");
  if (const std::optional<UpperNumber> above = upper_of(most)) {
    text += fmt::format("; at most {} ({})", above->words,
                        text_of(most, "upper_by"));
    const double factor = std::pow(10.0, above->log10) / lower;
    if (lower > 0.0)
      text += std::isfinite(factor)
                  ? fmt::format(", {:.3g} times that", factor)
                  : fmt::format(", 10^{:.1f} times that",
                                above->log10 - std::log10(lower));
  } else {
    text += "; no bound is proved there";
  }
  text += ".";
  if (cut > 0)
    text += fmt::format(
        " {} of {} ended early: more may be found (--budget, "
        "--max-evaluations).",
        cut,
        best.size() == 1 ? "1 search"
                         : fmt::format("{} searches", best.size()));
  return text;
}

std::string meanfield_finding(const Findings& records) {
  // whole and cut at the same measure
  struct Pair {
    ordered_json move, split;
  };
  std::vector<std::pair<std::string, Pair>> pairs;
  for (const ordered_json& r : records) {
    const ordered_json& asked = inside(r, "parameters");
    const std::string change = text_of(asked, "change");
    if ((change != "move" && change != "split") || !number_of(r, "lower"))
      continue;
    const std::string key = fmt::format(
        "{} {} {}", where(r), r.value("sample", ordered_json()).dump(),
        text_of(asked, "optimise"));
    auto at = std::find_if(pairs.begin(), pairs.end(),
                           [&](const auto& p) { return p.first == key; });
    if (at == pairs.end()) at = pairs.insert(pairs.end(), {key, {}});
    (change == "move" ? at->second.move : at->second.split) = r;
  }
  std::size_t both = 0, matters = 0;
  double gain = 1.0;
  const Pair* most = nullptr;
  const Pair* largest = nullptr;
  for (const auto& [key, pair] : pairs) {
    if (pair.move.is_null() || pair.split.is_null()) continue;
    ++both;
    const double whole = *number_of(pair.move, "lower");
    const double cut = *number_of(pair.split, "lower");
    if (!largest || cut > *number_of(largest->split, "lower")) largest = &pair;
    // less than this is rounding
    if (cut <= whole * (1 + 1e-9)) continue;
    ++matters;
    const double ratio = whole > 0.0 ? cut / whole : INFINITY;
    if (most && ratio <= gain) continue;
    gain = ratio;
    most = &pair;
  }
  if (both == 0) return "";
  if (!most)
    return fmt::format(
        "Answer: cutting tokens does not matter at {}: moving them whole "
        "reacts most, {} times ({}).",
        both == 1 ? "this input" : fmt::format("any of these {} inputs", both),
        six_digits_below(*number_of(largest->split, "lower")),
        where(largest->split));
  return fmt::format(
      "Answer: cutting tokens matters at {} of {}, most at {}: {} times with "
      "cutting, {} times without ({}).",
      matters, counted(both, "input"), where(most->split),
      six_digits_below(*number_of(most->split, "lower")),
      six_digits_below(*number_of(most->move, "lower")),
      std::isfinite(gain) ? fmt::format("{:.3g} times as much", gain)
                          : "nothing without");
}

std::string inverted_finding(const Findings& records) {
  if (records.empty()) return "";
  std::size_t back = 0;
  for (const ordered_json& r : records)
    back += text_of(r, "status") == "converged";
  const Findings errors = largest_first(records, "lower");
  const Findings bounds = largest_first(records, "upper");
  std::string text = back == records.size()
                         ? fmt::format("Answer: recovered, {}",
                                       counted(records.size(), "input"))
                         : fmt::format("Answer: {} of {} recovered", back,
                                       counted(records.size(), "input"));
  if (!errors.empty())
    text += fmt::format(": the {} is {}",
                        errors.size() > 1 ? "largest error" : "error",
                        six_digits_below(*number_of(errors.front(), "lower")));
  if (bounds.size() == records.size())
    text += fmt::format("{} proved to be at most {}",
                        errors.empty() ? ": the error is" : ", and is",
                        six_digits_above(*number_of(bounds.front(), "upper")));
  else
    text += bounds.empty()
                ? "; nothing is proved of it"
                : fmt::format("; it is proved for {} of them", bounds.size());
  return text + ".";
}

std::string recovered_finding(const Findings& records) {
  if (records.empty()) return "";
  double all = 0, back = 0, proved = 0, bound = 0;
  bool known = true, bounded = true;
  for (const ordered_json& r : records) {
    const ordered_json& details = inside(r, "details");
    all += number_of(r, "n").value_or(0);
    known = known && number_of(details, "recovered");
    back += number_of(details, "recovered").value_or(0);
    proved += number_of(details, "proved").value_or(0);
    bounded = bounded && number_of(r, "upper");
    bound = std::max(bound, number_of(r, "upper").value_or(0));
  }
  std::string text =
      known ? fmt::format("Answer: {} of {} characters recovered, ", back, all)
            : fmt::format("Answer: {} characters read, ", all);
  text += fmt::format("{} of them proved", proved);
  return text + (bounded ? fmt::format("; the error is proved to be at most "
                                       "{}.",
                                       six_digits_above(bound))
                         : "; no bound on the error is proved.");
}

std::string certified_finding(const Findings& records) {
  if (records.empty()) return "";
  std::vector<double> proved, found;
  std::size_t with = 0;
  for (const ordered_json& r : records) {
    // radii too small for a double are there as logarithms
    auto log10 = number_of(inside(r, "details"), "lower_log10");
    if (const auto lower = number_of(r, "lower"); !log10 && lower && *lower > 0)
      log10 = std::log10(*lower);
    with += log10.has_value();
    proved.push_back(log10.value_or(-INFINITY));
    const std::optional<UpperNumber> above = upper_of(r);
    found.push_back(above ? above->log10 : INFINITY);
  }
  const auto radius = [](double log10) {
    return log10 < -6 ? fmt::format("10^{:.2f}", log10)
                      : fmt::format("{:.5g}", std::pow(10.0, log10));
  };
  const double middle = median_log10(proved), attacked = median_log10(found);
  return fmt::format(
      "Answer: a radius is proved at {:.4g} % of {}; the median is {}, and "
      "attacks succeed at a median of {}.",
      100.0 * static_cast<double>(with) / static_cast<double>(records.size()),
      counted(records.size(), "position"),
      std::isinf(middle) ? "0" : radius(middle),
      std::isinf(attacked) ? "no distance known" : radius(attacked));
}

std::string trained_finding(const ordered_json& s) {
  const auto valid = number_of(s, "best_valid_nll"),
             test = number_of(s, "test_nll"), step = number_of(s, "best_step");
  if (!valid || !test) return "";
  std::string text = fmt::format(
      "Answer: {:.4f} nats a character ({:.4f} bits) on the test text, {:.4f} "
      "on the validation text (step {})",
      *test, *test / std::numbers::ln2, *valid, step.value_or(0));
  const auto limit = number_of(s, "limit"), got = number_of(s, "certified");
  if (limit && got)
    text += fmt::format("; promise {}: the constant is at most {}, promised {}",
                        *got <= *limit ? "kept" : "BROKEN",
                        six_digits_above(*got), six_digits(*limit));
  if (const auto cost = number_of(s, "cost_in_valid_nll"))
    text += fmt::format("; it costs {:+.4f} nats", *cost);
  return text + ".";
}

}  // namespace lipscope
