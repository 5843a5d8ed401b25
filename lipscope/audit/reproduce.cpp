#include "lipscope/audit/reproduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "lipscope/audit/inputs.h"
#include "lipscope/audit/subject.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/nearest_word.h"
#include "lipscope/io/sha256.h"
#include "lipscope/io/text_file.h"
#include "lipscope/model/model.h"
#include "lipscope/record/config_fingerprint.h"
#include "lipscope/record/fingerprint.h"
#include "lipscope/record/key.h"

namespace lipscope::audit {
namespace {

using nlohmann::ordered_json;

const Experiment& experiment_called(const std::string& name) {
  for (const Experiment& e : experiments())
    if (e.name == name) return e;
  throw InputError(
      fmt::format("reproduce {}: no experiment is called that; there are {}{}",
                  name, fmt::join(names_of_experiments(), ", "),
                  did_you_mean(name, names_of_experiments())));
}

class Reproducing final {
 public:
  Reproducing(ReproduceRequest request, Records& records, const Watch& watch)
      : o_(std::move(request)),
        experiment_(experiment_called(o_.name)),
        records_(records),
        watch_(watch) {
    const bool learns = experiment_.learns;
    if (o_.experiment.steps > 0 && !learns)
      throw InputError(fmt::format("--steps {}: nothing learns in {}",
                                   o_.experiment.steps, experiment_.name));
    if (!o_.experiment.runs.empty() && !experiment_.shows_runs)
      throw InputError(fmt::format("--runs {}: {} shows no trained models",
                                   o_.experiment.runs.front(),
                                   experiment_.name));
    if (!o_.text.empty() && !learns &&
        (o_.model.empty() || !experiment_.reads_text))
      throw InputError(fmt::format(
          "--text {}: {}", o_.text,
          experiment_.reads_text
              ? "a text is for a model with its tokenizer; give --model DIR"
              : experiment_.name + " reads no text"));
    if (!o_.text.empty()) text_sha256_ = sha256_file(o_.text);
    if (!o_.text.empty() && learns) {
      o_.experiment.text = read_text_file(o_.text);
      o_.experiment.text_name = o_.text;
      if (o_.experiment.text.empty())
        throw InputError(fmt::format("--text {}: is empty", o_.text));
    }
    if (o_.model.empty()) return;
    if (!experiment_.reads_model)
      throw InputError(fmt::format("--model {}: {} reads no model", o_.model,
                                   experiment_.name));
    SourceOptions source;
    source.model = o_.model;
    subject_ = load_subject(source);
    o_.experiment.model = &*subject_->model;
    o_.experiment.model_name = subject_->name;
    source.text = o_.text;
    if (!o_.text.empty()) {
      o_.experiment.ids = read_tokens(source, *subject_->model).ids;
      ids_sha256_ = fingerprint(o_.experiment.ids);
    }
  }

  std::vector<Drawn> run() {
    records_.open();
    // the questions are counted before the first is answered
    Index questions = 0, found = 0;
    experiment_.run(
        o_.experiment,
        {[&](const Figure& figure) { figure_ = figure; },
         [&](const Point& at, const Record& question, const Answer&) {
           ++questions;
           found += records_.find(asked(at, question)) != nullptr;
           return std::optional<double>();
         },
         [](const Point&, const Record&, const GrowthFit&) {},
         [](const std::string&) {}});
    records_.count(found, questions - found);
    progress_ = Progress(watch_, questions);
    experiment_.run(
        o_.experiment,
        {[&](const Figure& figure) { open(figure); },
         [&](const Point& at, const Record& question, const Answer& answer) {
           return ask(at, question, answer);
         },
         [&](const Point& at, const Record& of, const GrowthFit& fit) {
           records_.add(GrowthRecord{asked(at, of), keys_of(at.series), fit});
           drawn_[at_].fits.push_back(records_.fits().back());
         },
         [&](const std::string& doing) { progress_.show(done_, doing); }});
    return std::move(drawn_);
  }

 private:
  // of the records of a series, which are what is fitted
  std::vector<std::string> keys_of(const std::string& series) const {
    std::vector<std::string> keys;
    for (const auto& [name, key] : keys_[at_])
      if (name == series) keys.push_back(key);
    return keys;
  }

  void open(const Figure& figure) {
    figure_ = figure;
    const auto known = std::find_if(
        drawn_.begin(), drawn_.end(),
        [&](const Drawn& d) { return d.figure.name == figure.name; });
    at_ = static_cast<std::size_t>(known - drawn_.begin());
    if (known != drawn_.end()) return;
    drawn_.push_back({.figure = figure});
    keys_.emplace_back();
    Record r;
    r.command = "reproduce";
    r.quantity = {};
    r.seed = o_.experiment.seed;
    r.parameters["experiment"] = figure.name;
    r.details = {{"title", figure.title},
                 {"explanation", figure.explanation},
                 {"y_name", figure.y_name},
                 {"log_x", figure.log_x},
                 {"log_y", figure.log_y}};
    records_.add(r);
  }

  // the question with its place in the figure and all it may depend on
  Record asked(const Point& at, const Record& question) const {
    Record r = question;
    if (r.layer && subject_ && r.model == subject_->name)
      r.model_sha256 = subject_->sha256;
    r.seed = o_.experiment.seed;
    r.parameters = {{"experiment", figure_.name},
                    {"series", at.series},
                    {"x_name", figure_.x_name},
                    {"x", at.x}};
    set_source(r);
    r.parameters.update(question.parameters);
    // given, not measured: experiments choose it
    if (r.radius_max) r.parameters["radius"] = *r.radius_max;
    return r;
  }

  // what all answers may depend on: the size, the folder and the text
  void set_source(Record& r) const {
    r.parameters["full"] = o_.experiment.full;
    if (o_.experiment.steps > 0)
      r.parameters["asked_steps"] = o_.experiment.steps;
    if (subject_) {
      r.parameters["config_sha256"] = fingerprint(subject_->model->config);
      r.parameters["folder_sha256"] = *subject_->sha256;
    }
    if (text_sha256_) r.parameters["text_sha256"] = *text_sha256_;
    if (ids_sha256_) r.parameters["ids_sha256"] = *ids_sha256_;
  }

  std::optional<double> ask(const Point& at, const Record& question,
                            const Answer& answer) {
    progress_.show(done_, fmt::format("{} at {} = {:.4g}", at.series,
                                      drawn_[at_].figure.x_name, at.x));
    Record r = asked(at, question);
    if (!records_.keep(r)) {
      const auto start = std::chrono::steady_clock::now();
      answer(r);
      if (r.steps == 0) r.steps.reset();  // a dense norm takes none
      r.seconds = std::chrono::duration<double>(
                      std::chrono::steady_clock::now() - start)
                      .count();
      records_.add(r);
    }
    keys_[at_].emplace_back(at.series, key_of(records_.rows().back()));
    keep(records_.rows().back());
    ++done_;
    const ordered_json& lower = drawn_[at_].rows.back()["lower"];
    return lower.is_null() ? std::nullopt : std::optional(lower.get<double>());
  }

  void keep(const ordered_json& record) { drawn_[at_].rows.push_back(record); }

  ReproduceRequest o_;
  const Experiment& experiment_;
  Records& records_;
  Watch watch_;
  std::optional<Subject> subject_;
  Progress progress_{{}, 0};
  std::optional<std::string> text_sha256_, ids_sha256_;
  Figure figure_;             // the one that was opened last
  std::vector<Drawn> drawn_;  // in the order in which they were opened
  // of the rows of each figure: series and key
  std::vector<std::vector<std::pair<std::string, std::string>>> keys_;
  std::size_t at_ = 0;  // the one that is open
  Index done_ = 0;
};

}  // namespace

std::vector<std::string> names_of_experiments() {
  std::vector<std::string> names;
  for (const Experiment& e : experiments()) names.push_back(e.name);
  return names;
}

std::vector<Drawn> reproduce(const ReproduceRequest& request, Records& records,
                             const Watch& watch) {
  return Reproducing(request, records, watch).run();
}

}  // namespace lipscope::audit
