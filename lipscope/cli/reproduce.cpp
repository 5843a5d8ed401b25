// lipscope reproduce: a figure or table of the papers, made again.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "lipscope/cli/choice.h"
#include "lipscope/cli/commands.h"
#include "lipscope/cli/conclusion.h"
#include "lipscope/cli/config_fingerprint.h"
#include "lipscope/cli/fingerprint.h"
#include "lipscope/cli/key.h"
#include "lipscope/cli/measured_table.h"
#include "lipscope/cli/numbers.h"
#include "lipscope/cli/output.h"
#include "lipscope/cli/output_files.h"
#include "lipscope/cli/points.h"
#include "lipscope/cli/progress.h"
#include "lipscope/cli/reproduced_table.h"
#include "lipscope/cli/subject.h"
#include "lipscope/cli/terminal.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/nearest_word.h"
#include "lipscope/experiments/experiment.h"
#include "lipscope/io/sha256.h"
#include "lipscope/io/text_file.h"
#include "lipscope/report/findings.h"
#include "lipscope/report/wrap.h"
#include "lipscope/train/corpus.h"

namespace lipscope::cli {
namespace {

using nlohmann::ordered_json;

struct Options {
  std::string name = "list";
  std::string model, text;
  ExperimentOptions experiment;
  OutputOptions output;
};

std::string list_of_experiments(std::size_t width) {
  std::vector<Meaning> list;
  for (const Experiment& e : experiments())
    list.push_back({"  " + e.name, e.sentence});
  return legend(list, width);
}

std::vector<std::string> names_of_experiments() {
  std::vector<std::string> names;
  for (const Experiment& e : experiments()) names.push_back(e.name);
  return names;
}

void declare(CLI::App& app, Options& o) {
  app.description(
      "Make a figure or table of the papers again: numbers from below and from "
      "above, as a table\nand, with --out, as records that `lipscope report` "
      "draws.\n\n" +
      list_of_experiments(0) +
      "\n  lipscope reproduce kim-tightness\n"
      "  lipscope reproduce castin-adversarial --model gpt2/ --out "
      "adversarial.jsonl\n"
      "  lipscope reproduce kim-charlm --text shakespeare.txt --out "
      "charlm.jsonl --resume\n"
      "  lipscope reproduce mass-splitting --full --json");
  std::vector<std::string> names = names_of_experiments();
  names.push_back("list");
  offer(app.add_option("NAME", o.name, "the experiment; list: name them all")
            ->capture_default_str(),
        names);
  app.add_option("--model", o.model,
                 "a Hugging Face folder of GPT-2 or BERT whose heads are taken "
                 "in place of a small made-up one (castin-adversarial, "
                 "castin-real, layer-norm)")
      ->type_name("DIR");
  app.add_option("--text", o.text,
                 "a text that the model reads (castin-real), or that models "
                 "learn (kim-charlm, kim-stability, robustness-histogram; "
                 "without it, a generated one)")
      ->type_name("FILE");
  const char* group = "How hard to try";
  app.add_flag("--full", o.experiment.full,
               "the whole size of the paper: minutes to hours")
      ->group(group);
  app.add_option("--steps", o.experiment.steps,
                 "that each model learns, where models learn; 0: as many as "
                 "the size says")
      ->transform(whole_number(0, Index{1} << 30))
      ->capture_default_str()
      ->group(group);
  app.add_option("--seed", o.experiment.seed,
                 "of random weights, tokens and starts")
      ->transform(seed_number())
      ->capture_default_str()
      ->group(group);
  app.add_option("--threads", o.experiment.threads, "0: all cores")
      ->transform(whole_number(0, 4096))
      ->capture_default_str()
      ->group(group);
  declare_output(app, o.output, false);
}

const Experiment& experiment_called(const std::string& name) {
  for (const Experiment& e : experiments())
    if (e.name == name) return e;
  throw InputError(
      fmt::format("reproduce {}: no experiment is called that{}; there are "
                  "{}",
                  name, did_you_mean(name, names_of_experiments()),
                  fmt::join(names_of_experiments(), ", ")));
}

ordered_json object_of(const NamedNumbers& numbers) {
  ordered_json object = ordered_json::object();
  for (const auto& [name, value] : numbers) object[name] = value;
  return object;
}

class Reproducing final {
 public:
  explicit Reproducing(Options options)
      : o_(std::move(options)),
        experiment_(experiment_called(o_.name)),
        records_(o_.output) {
    const bool learns = experiment_.learns;
    if (o_.experiment.steps > 0 && !learns)
      throw InputError(fmt::format("--steps {}: nothing learns in {}",
                                   o_.experiment.steps, experiment_.name));
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

  int run() {
    // the questions are counted before the first is answered
    Index questions = 0, found = 0;
    experiment_.run(
        o_.experiment,
        {[&](const Figure& figure) { figure_ = figure; },
         [&](const Row& row, const Answer&) {
           ++questions;
           found += records_.find(asked(row)) != nullptr;
           return std::optional<double>();
         },
         [](const Row&, const GrowthFit&) {}, [](const std::string&) {}});
    records_.announce(found, questions - found);
    progress_ = std::make_unique<Progress>(questions, o_.output.quiet);
    experiment_.run(
        o_.experiment,
        {[&](const Figure& figure) { open(figure); },
         [&](const Row& question, const Answer& answer) {
           return ask(question, answer);
         },
         [&](const Row& of, const GrowthFit& fit) {
           records_.add(GrowthRecord{asked(of), keys_of(of.series), fit});
           drawn_[at_].fits.push_back(records_.fits().back());
         },
         [&](const std::string& doing) { progress_->show(done_, doing); }});
    progress_.reset();
    print();
    return 0;
  }

 private:
  // a figure with what is in it
  struct Drawn {
    Figure figure;
    std::vector<ordered_json> rows, fits;
    std::vector<std::pair<std::string, std::string>> keys;  // by series
  };

  // of the rows of a series, which are what is fitted
  std::vector<std::string> keys_of(const std::string& series) const {
    std::vector<std::string> keys;
    for (const auto& [name, key] : drawn_[at_].keys)
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
    drawn_.push_back({figure, {}, {}, {}});
    Record r;
    r.command = "reproduce";
    r.seed = o_.experiment.seed;
    r.parameters["experiment"] = figure.name;
    r.details = {{"title", figure.title},
                 {"explanation", figure.explanation},
                 {"y_name", figure.y_name},
                 {"log_x", figure.log_x},
                 {"log_y", figure.log_y}};
    records_.add(r);
  }

  // what is asked, without its answer
  Record asked(const Row& row) const {
    Record r;
    r.command = "reproduce";
    r.model = row.model;
    if (row.layer && subject_ && row.model == subject_->name)
      r.model_sha256 = subject_->sha256;
    r.layer = row.layer;
    r.head = row.head;
    r.map = row.map;
    r.kind = row.mixer.empty() ? name_of(row.kind) : row.mixer;
    r.mask = name_of(row.mask);
    r.norm = row.norm;
    r.n = row.n;
    r.d = row.d;
    r.radius_max = row.radius;
    r.scope = row.scope;
    r.dtype = row.dtype;
    r.seed = o_.experiment.seed;
    r.value_of = row.value_of;
    r.parameters = {{"experiment", figure_.name},
                    {"series", row.series},
                    {"x_name", figure_.x_name},
                    {"x", row.x}};
    tell_source(r);
    r.parameters.update(object_of(row.parameters));
    // given, not measured: experiments choose it
    if (row.radius) r.parameters["radius"] = *row.radius;
    return r;
  }

  // what all answers may depend on: the size, the folder and the text
  void tell_source(Record& r) const {
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

  std::optional<double> ask(const Row& question, const Answer& answer) {
    progress_->show(done_, fmt::format("{} at {} = {:.4g}", question.series,
                                       drawn_[at_].figure.x_name, question.x));
    Record r = asked(question);
    if (!records_.keep(r)) {
      const auto start = std::chrono::steady_clock::now();
      Row row = question;
      answer(row);
      r.lower = row.lower;
      r.lower_by = row.lower_by;
      r.upper = row.upper;
      r.upper_log10 = row.upper_log10;
      r.upper_by = row.upper_by;
      r.value = row.value;
      r.residual = row.residual;
      if (row.steps > 0) r.steps = row.steps;
      r.converged = row.converged;
      r.details = object_of(row.details);
      r.seconds = std::chrono::duration<double>(
                      std::chrono::steady_clock::now() - start)
                      .count();
      records_.add(r);
    }
    drawn_[at_].keys.emplace_back(question.series,
                                  key_of(records_.shown().back()));
    keep(records_.shown().back());
    ++done_;
    const ordered_json& lower = drawn_[at_].rows.back()["lower"];
    return lower.is_null() ? std::nullopt : std::optional(lower.get<double>());
  }

  void keep(const ordered_json& record) { drawn_[at_].rows.push_back(record); }

  void print() const {
    Rows all;
    for (const auto& [figure, rows, fits, keys] : drawn_)
      all.insert(all.end(), rows.begin(), rows.end());
    Rows spoken_of = all;
    for (const auto& [figure, rows, fits, keys] : drawn_)
      spoken_of.insert(spoken_of.end(), fits.begin(), fits.end());
    conclude(o_.output, all,
             {.table =
                  [&](const Rows&, const View& view) {
                    std::string text;
                    for (const auto& [figure, rows, fits, keys] : drawn_)
                      if (!rows.empty())
                        text += figure_table(figure, rows, view) +
                                growth_table(fits, view) + "\n";
                    return text;
                  },
              .answer = reproduced_finding(experiment_.name, spoken_of)});
  }

  Options o_;
  const Experiment& experiment_;
  Records records_;
  std::optional<Subject> subject_;
  std::unique_ptr<Progress> progress_;
  std::optional<std::string> text_sha256_, ids_sha256_;
  Figure figure_;             // the one that was opened last
  std::vector<Drawn> drawn_;  // in the order in which they were opened
  std::size_t at_ = 0;        // the one that is open
  Index done_ = 0;
};

}  // namespace

Run reproduce_command(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  declare(app, *options);
  return [options] {
    if (options->name == "list") {
      print_text(list_of_experiments(screen_width(STDOUT_FILENO)));
      return 0;
    }
    OutputFiles files;
    files.reads(options->model, "--model");
    files.reads(options->text, "--text");
    files.writes(options->output.out, "--out", OutputKind::records);
    files.check(options->output.force);
    return Reproducing(*options).run();
  };
}

}  // namespace lipscope::cli
