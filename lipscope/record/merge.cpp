#include "lipscope/record/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "lipscope/core/errors.h"
#include "lipscope/core/version.h"
#include "lipscope/io/json_text.h"
#include "lipscope/io/sha256.h"
#include "lipscope/record/check_fields.h"
#include "lipscope/record/fingerprint.h"
#include "lipscope/record/key.h"
#include "lipscope/record/provenance.h"
#include "lipscope/record/records.h"

namespace lipscope {
namespace {

using nlohmann::ordered_json;

constexpr double usual_tolerance = 1e-6;

std::optional<double> value_in(const ordered_json& record, const char* field) {
  const auto at = record.find(field);
  if (at == record.end() || !at->is_number()) return std::nullopt;
  return at->get<double>();
}

std::string text_in(const ordered_json& record, const char* field) {
  const auto at = record.find(field);
  return at != record.end() && at->is_string() ? at->get<std::string>() : "";
}

ordered_json parsed(const std::string& line) {
  return parse_ordered_json("merge", line);
}

// every field in which two answers differ, with both values
std::string differing_fields(const ordered_json& a, const ordered_json& b,
                             const std::string& within = "") {
  std::string words;
  const auto add = [&](const std::string& name) {
    const ordered_json x = a.value(name, ordered_json()),
                       y = b.value(name, ordered_json());
    if (x == y) return;
    const std::string inside =
        x.is_object() && y.is_object()
            ? differing_fields(x, y, within + name + ".")
            : fmt::format("{}{} {} and {}", within, name,
                          shown(nlohmann::json(x)), shown(nlohmann::json(y)));
    words += (words.empty() ? "" : "; ") + inside;
  };
  for (const auto& [name, value] : a.items()) add(name);
  for (const auto& [name, value] : b.items())
    if (!a.contains(name)) add(name);
  return words;
}

std::string both_shown(const ordered_json& kept, const std::string& kept_at,
                       const ordered_json& other, const std::string& other_at) {
  return fmt::format("\n  {}: {}  {}: {}", kept_at,
                     json_line(without_provenance(kept)), other_at,
                     json_line(without_provenance(other)));
}

// Whether one is known to be below what the other is known to be above.
bool contradict(const ordered_json& a, const ordered_json& b) {
  const auto above = [](const ordered_json& low, const ordered_json& high) {
    const auto lower = value_in(low, "lower");
    for (const char* side : {"upper", "upper_whp"})
      if (const auto upper = value_in(high, side);
          lower && upper && *lower > *upper)
        return true;
    const auto log10 = value_in(high, "upper_log10");
    return lower && log10 && *lower > 0.0 && std::log10(*lower) > *log10;
  };
  return above(a, b) || above(b, a);
}

// A side that was found, not proved, is as good as the luck of its search: two
// such may differ by any amount and both be right. Those of `measure` are
// iterated to a tolerance and may not.
bool settled(const ordered_json& record, const char* evidence) {
  const auto asked = record.find("parameters");
  const bool measured = asked != record.end() && asked->contains("tolerance");
  return text_in(record, "status") == "converged" &&
         (measured || text_in(record, evidence) == "proved");
}

bool apart(const ordered_json& a, const ordered_json& b, double tolerance) {
  for (const auto& [field, evidence] :
       {std::pair("lower", "lower_is"), {"upper", "upper_is"}}) {
    if (!settled(a, evidence) || !settled(b, evidence)) continue;
    const auto x = value_in(a, field), y = value_in(b, field);
    if (x.has_value() != y.has_value()) return true;
    if (x &&
        std::abs(*x - *y) > tolerance * std::max(std::abs(*x), std::abs(*y)))
      return true;
  }
  return false;
}

}  // namespace

Merge::Merge(const Plan& plan, MergeOptions options)
    : plan_(plan), options_(options) {
  const std::vector<Question>& questions = plan.questions();
  for (std::size_t q = 0; q < questions.size(); ++q)
    asked_[questions[q].key].push_back(q);
}

bool Merge::asks(const ordered_json& record) const {
  if (text_in(record, "command") != "growth")
    return asked_.contains(question_key(record));
  const std::string key = key_of(record);
  return std::any_of(
      plan_.fits().begin(), plan_.fits().end(),
      [&](const ordered_json& fit) { return key_of(fit) == key; });
}

bool Merge::add(const ordered_json& record, const std::string& place) {
  const auto refuse = [&](const std::string& why) {
    throw InputError(fmt::format("{}: {}", place, why));
  };
  if (begins_plan(record)) refuse("a plan, not records");
  if (text_in(record, "command") == "growth") return false;
  try {
    check_fields(record, RecordUse::resumed);
    check_seal(record);
  } catch (const InputError& wrong) {
    refuse(wrong.what());
  }
  const std::string question = question_key(record);
  const auto asked = asked_.find(question);
  if (asked == asked_.end()) {
    const std::string made_by = text_in(record, "version");
    refuse(fmt::format("answers no question of {}{}", plan_.name(),
                       made_by != version()
                           ? fmt::format(": it was made by version {}", made_by)
                           : ""));
  }
  try {
    check_sides(record);
  } catch (const Violation& wrong) {
    throw Violation(fmt::format("{}: {}", place, wrong.what()));
  }
  if (!is_complete(record)) {
    ++cut_;
    return false;
  }
  const std::size_t at = place_in_plan(asked->second, record);
  const bool several =
      plan_.command() == "bound" || plan_.command() == "search";
  const std::string key = several ? sha256_text(key_of(record)) : question;
  Answer& answer = answers_[question];
  Kept candidate{json_line(record), place, at};
  const auto known = answer.records.find(key);
  if (known == answer.records.end()) {
    answer.keys.push_back(key);
    answer.records.emplace(key, std::move(candidate));
    ++records_;
    return true;
  }
  Kept& kept = known->second;
  const bool first = at < kept.at;
  const ordered_json before = parsed(kept.line);
  if (first)
    compare(record, place, before, kept.place);
  else
    compare(before, kept.place, record, place);
  // at another place it is another window of the text with the same words
  if (at == kept.at) ++duplicates_;
  if (first) kept = std::move(candidate);
  return false;
}

// the first of the places at which its question is asked that it was made for
std::size_t Merge::place_in_plan(const std::vector<std::size_t>& asked,
                                 const ordered_json& record) const {
  if (asked.size() == 1) return asked.front();
  const std::string here = place_of(record);
  for (const std::size_t q : asked)
    if (place_of(parsed(plan_.questions()[q].line)) == here) return q;
  return plan_.questions().size();
}

void Merge::compare(const ordered_json& kept, const std::string& kept_at,
                    const ordered_json& other, const std::string& other_at) {
  const ordered_json a = answer_of(kept), b = answer_of(other);
  if (a == b) return;
  const std::string fields = differing_fields(a, b);
  const std::string one = made_on(kept), two = made_on(other);
  const auto conflict = [&](const std::string& why) {
    throw MergeConflict(
        fmt::format("{} and {}: {} ({}){}", kept_at, other_at, why, fields,
                    both_shown(kept, kept_at, other, other_at)));
  };
  if (one == two)
    conflict(fmt::format(
        "one question, two answers, both of {}, which must agree to the last "
        "bit",
        one));
  double tolerance = options_.tolerance.value_or(usual_tolerance);
  if (!options_.tolerance)
    if (const auto asked = kept.find("parameters"); asked != kept.end())
      tolerance = value_in(*asked, "tolerance").value_or(tolerance);
  if (contradict(kept, other))
    conflict(fmt::format("the enclosures of {} and of {} contradict each other",
                         one, two));
  if (apart(kept, other, tolerance))
    conflict(fmt::format("the answers of {} and of {} differ by more than {:g}",
                         one, two, tolerance));
  differences_.push_back(fmt::format("{} is kept, not {}: {}, of {} and of {}",
                                     kept_at, other_at, fields, one, two));
}

// A search is answered when its best input is there; bounds, when there are as
// many as were found.
bool Merge::complete(const Answer& answer) const {
  if (answer.records.empty()) return false;
  if (plan_.command() == "search") {
    for (const auto& [key, kept] : answer.records)
      if (parsed(kept.line)["parameters"].value("of", "") == "best")
        return true;
    return false;
  }
  if (plan_.command() == "bound") {
    const ordered_json details =
        parsed(answer.records.begin()->second.line)["details"];
    return answer.records.size() >= details.value("bounds", std::size_t{1});
  }
  return true;
}

std::vector<ordered_json> Merge::rows_of(const Answer& answer) const {
  std::vector<ordered_json> rows;
  for (const std::string& key : answer.keys)
    rows.push_back(parsed(answer.records.at(key).line));
  if (plan_.command() == "bound")  // the best first
    std::stable_sort(rows.begin(), rows.end(),
                     [](const ordered_json& a, const ordered_json& b) {
                       return value_in(a, "upper_log10") <
                              value_in(b, "upper_log10");
                     });
  if (plan_.command() == "search") {
    // starts in the order in which they were tried, the best of all last
    std::map<std::string, std::size_t> tried;
    for (const ordered_json& row : rows)
      if (row["parameters"].value("of", "") == "best" &&
          row["details"].contains("starts"))
        for (const ordered_json& start : row["details"]["starts"])
          tried.emplace("start " + start.value("start", ""), tried.size());
    const auto turn = [&](const ordered_json& row) {
      const auto at = tried.find(row["parameters"].value("of", ""));
      return at == tried.end() ? tried.size() : at->second;
    };
    std::stable_sort(rows.begin(), rows.end(),
                     [&](const ordered_json& a, const ordered_json& b) {
                       return turn(a) < turn(b);
                     });
  }
  return rows;
}

const Merge::Answer* Merge::answer_to(const Question& question) const {
  const auto at = answers_.find(question.key);
  return at != answers_.end() && complete(at->second) ? &at->second : nullptr;
}

std::vector<const Question*> Merge::missing() const {
  std::vector<const Question*> none;
  for (const Question& question : plan_.questions())
    if (!answer_to(question)) none.push_back(&question);
  return none;
}

// The fit through the answers of its layer and head, if all of them are there.
std::optional<ordered_json> Merge::fit_of(ordered_json fit) const {
  const auto whole = [&](const char* field) -> std::optional<Index> {
    return fit[field].is_number_integer()
               ? std::optional(fit[field].get<Index>())
               : std::nullopt;
  };
  std::vector<GrowthPoint> points;
  std::vector<std::string> keys;
  for (const Question& q : plan_.questions()) {
    if (q.layer != whole("layer") || q.head != whole("head")) continue;
    const Answer* answer = answer_to(q);
    if (!answer) return std::nullopt;
    const ordered_json row = parsed(answer->records.begin()->second.line);
    points.push_back(
        {q.n, row["lower"].get<double>(), row["radius_rms"].get<double>()});
    keys.push_back(key_of(row));
  }
  std::sort(keys.begin(), keys.end());
  if (fit["parameters"].value("points_sha256", "") != fingerprint(keys))
    throw InputError(
        fmt::format("{}: the growth of layer {}, head {} is not that of the "
                    "questions of this plan",
                    plan_.name(), fit["layer"].dump(), fit["head"].dump()));
  sort_points(points);
  const std::optional<GrowthFit> found = fit_growth(points);
  if (!found) return std::nullopt;
  fit["commit"] = commit();
  set_fit(fit, *found);
  return fit;
}

void Merge::write(const std::function<void(const ordered_json&)>& row,
                  const std::function<void(const ordered_json&)>& fit) const {
  for (const Question& question : plan_.questions()) {
    const Answer* answer = answer_to(question);
    if (!answer) continue;
    const ordered_json asked = parsed(question.line);
    for (ordered_json record : rows_of(*answer)) {
      record.erase("line_sha256");
      row(at_the_place_of(asked, std::move(record)));
    }
  }
  for (const ordered_json& planned : plan_.fits())
    if (const auto made = fit_of(planned)) fit(*made);
}

}  // namespace lipscope
