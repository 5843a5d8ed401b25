#include "lipscope/report/page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "lipscope/core/errors.h"
#include "lipscope/core/version.h"
#include "lipscope/report/findings.h"
#include "lipscope/report/page_parts.h"

namespace lipscope {
namespace {

using nlohmann::ordered_json;

// Inside <script> only "<" could end the data early. In JSON it stands in
// strings and nowhere else, where it may be written as an escape.
std::string fit_for_script(const std::string& json) {
  std::string text;
  text.reserve(json.size());
  for (const char c : json)
    if (c == '<')
      text += "\\u003c";
    else
      text += c;
  return text;
}

std::string fit_for_html(const std::string& plain) {
  std::string text;
  for (const char c : plain) switch (c) {
      case '&':
        text += "&amp;";
        break;
      case '<':
        text += "&lt;";
        break;
      case '>':
        text += "&gt;";
        break;
      case '"':
        text += "&quot;";
        break;
      default:
        text += c;
    }
  return text;
}

// Every {{name}} of the template by its text, in one pass: what is filled in
// is not looked at again.
std::string filled(std::string_view html,
                   const std::map<std::string, std::string_view>& texts) {
  std::string page;
  while (true) {
    const std::size_t open = html.find("{{");
    page += html.substr(0, open);
    if (open == html.npos) return page;
    const std::size_t close = html.find("}}", open);
    require(close != html.npos, "Page: {{{{ is not closed in the template");
    page += texts.at(std::string(html.substr(open + 2, close - open - 2)));
    html = html.substr(close + 2);
  }
}

// shares in units of 1e-4, or nothing where the value is no list of n shares
std::optional<std::vector<int>> shares_in(const ordered_json& details,
                                          const char* name) {
  const auto at = details.find(name);
  if (at == details.end() || !at->is_array()) return std::nullopt;
  std::vector<int> shares;
  for (const ordered_json& share : *at) {
    if (!share.is_number()) return std::nullopt;
    const double value = share.get<double>();
    if (!(value >= 0.0 && value <= 1.0)) return std::nullopt;
    shares.push_back(static_cast<int>(std::lround(1e4 * value)));
  }
  return shares;
}

// A flow in units of 1e-4, end to end, or nothing where the value is no n rows
// of n numbers. Its parts may be negative, and together they make 1.
std::vector<int> flow_in(const ordered_json& details, std::size_t n) {
  const auto at = details.find("flow");
  if (at == details.end() || !at->is_array() || at->size() != n) return {};
  std::vector<int> flow;
  for (const ordered_json& row : *at) {
    if (!row.is_array() || row.size() != n) return {};
    for (const ordered_json& part : row) {
      constexpr double most = 1e4;
      if (!part.is_number() || !(std::abs(part.get<double>()) <= most))
        return {};
      flow.push_back(static_cast<int>(std::lround(1e4 * part.get<double>())));
    }
  }
  return flow;
}

bool are_words(const ordered_json& tokens, std::size_t n) {
  return tokens.is_array() && tokens.size() == n &&
         std::all_of(tokens.begin(), tokens.end(),
                     [](const ordered_json& t) { return t.is_string(); });
}

// {"details": {"x": 1}} as {"details.x": 1}: columns are of plain values
void flatten(ordered_json& record, const std::string& field) {
  const auto at = record.find(field);
  if (at == record.end() || !at->is_object()) return;
  const ordered_json members = *at;
  record.erase(field);
  for (const auto& [name, value] : members.items())
    record[field + "." + name] = value;
}

// Says what the figure of an experiment is about, and has no number of its own.
bool describes(const ordered_json& record) {
  const auto member = [&](const char* of, const char* name) {
    const auto at = record.find(of);
    return at != record.end() && at->is_object() && at->contains(name);
  };
  const auto is_number = [&](const char* field) {
    const auto at = record.find(field);
    return at != record.end() && at->is_number();
  };
  return member("parameters", "experiment") && member("details", "title") &&
         !is_number("lower") && !is_number("upper") &&
         !is_number("upper_log10") && !is_number("upper_whp") &&
         !is_number("value");
}

// A logarithm that only repeats its number is left for the page to take again.
void drop_repeated_log10(ordered_json& record) {
  const auto upper = record.find("upper"), log10 = record.find("upper_log10");
  if (upper == record.end() || log10 == record.end() || !upper->is_number() ||
      !log10->is_number())
    return;
  const double again = std::log10(upper->get<double>());
  if (std::abs(again - log10->get<double>()) <= 1e-7) *log10 = nullptr;
}

std::string field_json(const ordered_json& record, const char* field) {
  const auto at = record.find(field);
  return at == record.end() ? "null" : compact_json(*at);
}

}  // namespace

void Page::begin_file(const std::string& name) {
  files_.push_back(name);
  counts_.push_back(0);
}

void Page::add(ordered_json record) {
  require(!files_.empty(), "Page: a record before its file");
  require(record.is_object(), "Page: a record is an object, not {}",
          record.type_name());
  record["file"] = files_.size() - 1;
  keep_of_experiment(record);
  if (record.value("command", ordered_json()) == "growth") {
    growth_.push_back(compact_json(record));
    return;
  }
  if (describes(record)) {
    figures_.push_back(compact_json(record));
    return;
  }
  take_shares(record);
  drop_repeated_log10(record);
  for (const char* field : {"input", "parameters", "details"})
    flatten(record, field);
  columns_.add(record);
  ++counts_.back();
}

void Page::leave_out(const ordered_json& record) {
  require(!files_.empty(), "Page: a record before its file");
  ++counts_.back();
  ++left_out_;
  if (const auto at = record.find("seconds");
      at != record.end() && at->is_number())
    left_out_seconds_ += at->get<double>();
}

// "castin-adversarial, mask none" is a figure of castin-adversarial.
void Page::keep_of_experiment(const ordered_json& record) {
  const ordered_json command = record.value("command", ordered_json());
  if (command != "reproduce" && command != "growth") return;
  const auto parameters = record.find("parameters");
  if (parameters == record.end() || !parameters->is_object()) return;
  const auto name = parameters->find("experiment");
  if (name == parameters->end() || !name->is_string()) return;
  const std::string figure = name->get<std::string>();
  experiments_[{files_.size() - 1, figure.substr(0, figure.find(','))}]
      .push_back(record);
}

// {"0 kim-tightness": "reproduced: …", …}, by file and experiment
std::string Page::findings() const {
  ordered_json found = ordered_json::object();
  for (const auto& [of, records] : experiments_) {
    std::string words = reproduced_finding(of.second, records);
    // the command line's first word; on the page the sentence is the headline
    if (const std::string first = "Answer: "; words.starts_with(first))
      words = words.substr(first.size());
    if (!words.empty())
      found[fmt::format("{} {}", of.first, of.second)] = words;
  }
  return compact_json(found);
}

// Shares are by far the longest part of a record: they leave the columns, and
// a list of tokens is kept once for all that was measured on it.
void Page::take_shares(ordered_json& record) {
  const auto details = record.find("details");
  if (details == record.end() || !details->is_object()) return;
  const auto input = shares_in(*details, "input_share");
  if (!input || input->empty()) return;
  const auto output = shares_in(*details, "output_share");
  if (output && output->size() != input->size()) return;
  ordered_json tokens = details->value("tokens", ordered_json());
  if (!tokens.is_null() && !are_words(tokens, input->size())) return;

  const std::string text = compact_json(tokens);
  const auto [place, is_new] = text_places_.try_emplace(text, texts_.size());
  if (is_new) texts_.push_back(text);
  const ordered_json lower = record.value("lower", ordered_json());
  shares_.push_back({.record = columns_.size(),
                     .text = place->second,
                     .lower = lower.is_number() ? lower.get<double>() : 0.0,
                     .group = field_json(record, "file") + " " +
                              field_json(record, "layer") + " " +
                              field_json(record, "head"),
                     .input = *input,
                     .output = output.value_or(std::vector<int>()),
                     .flow = flow_in(*details, input->size())});
  for (const char* name : {"tokens", "input_share", "output_share", "flow"})
    details->erase(name);
  if (details->empty()) record.erase("details");
}

// The largest of every group, then the second largest of every group, …: what
// is shown first is there, whatever is left out.
std::vector<Page::Shares> Page::chosen_shares() const {
  std::vector<std::size_t> order(shares_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) {
                     return shares_[a].lower > shares_[b].lower;
                   });
  std::map<std::string, std::size_t> seen;
  std::vector<std::size_t> rank(shares_.size());
  for (const std::size_t i : order) rank[i] = seen[shares_[i].group]++;
  std::stable_sort(
      order.begin(), order.end(),
      [&](std::size_t a, std::size_t b) { return rank[a] < rank[b]; });

  std::vector<Shares> chosen;
  std::size_t tokens = 0, flows = 0;
  for (const std::size_t i : order) {
    tokens += shares_[i].input.size();
    if (tokens > options_.most_shares && !chosen.empty()) break;
    chosen.push_back(shares_[i]);
    flows += shares_[i].flow.size();
    if (flows > options_.most_flows && chosen.size() > 1)
      chosen.back().flow.clear();
  }
  return chosen;
}

std::string Page::data() const {
  const std::vector<Shares> chosen = chosen_shares();
  // texts that none of the chosen uses stay behind
  std::map<std::size_t, std::size_t> text_at;
  std::vector<std::string> texts, shares;
  for (const Shares& s : chosen) {
    const auto [place, is_new] = text_at.try_emplace(s.text, texts.size());
    if (is_new) texts.push_back(texts_[s.text]);
    shares.push_back(fmt::format("[{},{},[{}],[{}],[{}]]", s.record,
                                 place->second, fmt::join(s.input, ","),
                                 fmt::join(s.output, ","),
                                 fmt::join(s.flow, ",")));
  }
  std::vector<std::string> files;
  for (std::size_t i = 0; i < files_.size(); ++i)
    files.push_back(fmt::format(R"({{"name":{},"records":{}}})",
                                compact_json(files_[i]), counts_[i]));
  return fmt::format(
      R"({{"version":{},"machine":{},"compare":{},"files":[{}],"count":{},"columns":{},)"
      R"("growth":[{}],"figures":[{}],"findings":{},"texts":[{}],"shares":[{}],"shares_of":{},"left_out":{},"left_out_seconds":{},"of_each":{}}})",
      compact_json(version()), compact_json(options_.machine), options_.compare,
      fmt::join(files, ","), columns_.size(), columns_.json(),
      fmt::join(growth_, ","), fmt::join(figures_, ","), findings(),
      fmt::join(texts, ","), fmt::join(shares, ","), shares_.size(), left_out_,
      left_out_seconds_, options_.of_each);
}

// what the template says of itself, and what it said before
bool is_page(std::string_view beginning) {
  const std::string_view head = beginning.substr(0, 4096);
  return head.starts_with("<!doctype html>") &&
         (head.find("<meta name=\"generator\" content=\"lipscope\">") !=
              head.npos ||
          head.find("<title>lipscope: ") != head.npos);
}

std::string Page::html() const {
  const std::string title =
      fit_for_html(fmt::format("{}", fmt::join(files_, " and ")));
  const std::string embedded = fit_for_script(data());
  return filled(page_parts::html, {{"title", title},
                                   {"style", page_parts::style},
                                   {"chart", page_parts::chart},
                                   {"script", page_parts::script},
                                   {"data", embedded}});
}

}  // namespace lipscope
