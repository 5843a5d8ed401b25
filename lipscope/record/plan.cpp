#include "lipscope/record/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <utility>

#include "lipscope/core/errors.h"
#include "lipscope/core/version.h"
#include "lipscope/io/file_descriptor.h"
#include "lipscope/io/journal.h"
#include "lipscope/io/json_fields.h"
#include "lipscope/io/json_text.h"
#include "lipscope/record/check_fields.h"
#include "lipscope/record/key.h"

namespace lipscope {
namespace {

using nlohmann::ordered_json;

// What a question has of a record: all that the key is made of, and the names
// under which it is asked. In the order of a record.
constexpr const char* asked_fields[] = {
    "schema", "command", "version",  "model",     "model_sha256", "layer",
    "head",   "map",     "kind",     "mask",      "norm",         "quantity",
    "n",      "d",       "sample",   "input",     "delta",        "scope",
    "dtype",  "seed",    "value_of", "parameters"};

// what a fit has of its answer
constexpr const char* fitted_fields[] = {
    "commit",        "points",   "exponent",  "exponent_low",
    "exponent_high", "constant", "r_squared", "radius_correlation"};

std::string line_of(const ordered_json& content) {
  std::string line = json_line(content);
  line.pop_back();  // the newline
  return line;
}

Question question_in(const ordered_json& content, Index line_number) {
  return {.number = whole_number_in(content, "question").value_or(0),
          .key = text_in(content, "key"),
          .layer = whole_number_in(content, "layer"),
          .head = whole_number_in(content, "head"),
          .n = whole_number_in(content, "n").value_or(0),
          .sample = whole_number_in(content, "sample").value_or(0),
          .line = line_of(content),
          .line_number = line_number};
}

ordered_json first_line(const std::string& command, const std::string& made_by,
                        const std::vector<std::string>& arguments,
                        std::size_t questions) {
  return {{"schema", 2},   {"command", "plan"},      {"version", made_by},
          {"of", command}, {"arguments", arguments}, {"questions", questions}};
}

PlannedCommand planned(const ordered_json& first) {
  const auto of = first.find("of"), arguments = first.find("arguments");
  const auto is_word = [](const ordered_json& word) {
    return word.is_string();
  };
  if (!begins_plan(first) || of == first.end() || !of->is_string() ||
      arguments == first.end() || !arguments->is_array() ||
      !std::all_of(arguments->begin(), arguments->end(), is_word))
    throw InputError(
        "expected the first line of a plan, with \"command\": \"plan\", \"of\" "
        "and \"arguments\"; lipscope plan writes it");
  return {*of, *arguments};
}

}  // namespace

Plan::Plan(std::string command, std::vector<std::string> arguments)
    : command_(std::move(command)),
      version_(version()),
      arguments_(std::move(arguments)) {}

void Plan::add(const Record& question) {
  const ordered_json record = to_json(question);
  ordered_json content;
  for (const char* field : asked_fields)
    if (record.contains(field)) content[field] = record[field];
  content["question"] = questions_.size();
  content["key"] = question_key(content);
  questions_.push_back(
      question_in(content, static_cast<Index>(questions_.size()) + 2));
}

void Plan::add(const GrowthRecord& fit) {
  ordered_json content = to_json(fit);
  for (const char* field : fitted_fields) content[field] = nullptr;
  fits_.push_back(std::move(content));
}

Plan Plan::with(const std::vector<const Question*>& questions) const {
  Plan some(command_, arguments_);
  some.version_ = version_;
  for (const Question* question : questions) {
    some.questions_.push_back(*question);
    some.questions_.back().line_number =
        static_cast<Index>(some.questions_.size()) + 1;
  }
  return some;
}

std::string Plan::text() const {
  std::string text =
      json_line(first_line(command_, version_, arguments_, questions_.size()));
  for (const Question& question : questions_) text += question.line + "\n";
  for (const ordered_json& fit : fits_) text += json_line(fit);
  return text;
}

bool begins_plan(const ordered_json& line) {
  return line.is_object() && text_in(line, "command") == "plan" &&
         line.contains("arguments");
}

Plan read_plan(const std::filesystem::path& path) {
  Plan plan;
  plan.name_ = path.string();
  Index line = 0;
  Index promised = 0;
  std::set<Index> numbers;
  read_journal(path, [&](ordered_json content) {
    ++line;
    if (line == 1) {
      PlannedCommand of = planned(content);
      plan.command_ = std::move(of.command);
      plan.arguments_ = std::move(of.arguments);
      plan.version_ = text_in(content, "version");
      promised = whole_number_in(content, "questions").value_or(0);
      return;
    }
    check_fields(content, RecordUse::shown);
    const std::string command = text_in(content, "command");
    if (command == "growth") {
      if (!content.contains("parameters") || !content["parameters"].is_object())
        throw InputError("a fit of growth without \"parameters\"");
      plan.fits_.push_back(std::move(content));
      return;
    }
    if (command != plan.command_)
      throw InputError(fmt::format("a question of '{}' in a plan of '{}'",
                                   command, plan.command_));
    const Question question = question_in(content, line);
    if (!content.contains("question") || question.number < 0 ||
        !numbers.insert(question.number).second)
      throw InputError(
          "\"question\": expected its number, from 0 on, which no other line "
          "has");
    if (question.key != question_key(content))
      throw InputError(
          "was changed since it was written: its key is not that of its "
          "fields");
    plan.questions_.push_back(question);
  });
  if (line == 0) throw InputError(fmt::format("{}: is empty", path.string()));
  if (static_cast<Index>(plan.questions_.size()) != promised)
    throw InputError(fmt::format(
        "{}: line {}: ends after {} questions, the first line says {}",
        path.string(), line, plan.questions_.size(), promised));
  return plan;
}

PlannedCommand read_planned_command(const std::filesystem::path& path) {
  open_regular_file(path);  // says what is wrong with it
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line))
    throw InputError(
        fmt::format("{}: is empty; expected a plan, as lipscope plan writes it",
                    path.string()));
  const std::string place = fmt::format("{}: line 1", path.string());
  try {
    return planned(parse_ordered_json(place, line));
  } catch (const JsonSyntaxError&) {
    throw InputError(
        fmt::format("{}: is not JSON; expected a plan, as "
                    "lipscope plan writes it",
                    place));
  } catch (const InputError& wrong) {
    const std::string what = wrong.what();
    throw InputError(what.starts_with(place) ? what : place + ": " + what);
  }
}

std::string words_of(const Question& q) {
  std::string words;
  if (q.layer) words += fmt::format("layer {}, ", *q.layer);
  if (q.head) words += fmt::format("head {}, ", *q.head);
  return words + fmt::format("n = {}, sample {}", q.n, q.sample);
}

}  // namespace lipscope
