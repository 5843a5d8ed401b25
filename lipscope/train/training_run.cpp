#include "lipscope/train/training_run.h"

#include <chrono>
#include <cmath>
#include <span>

#include "lipscope/core/errors.h"
#include "lipscope/io/atomic_file.h"
#include "lipscope/io/journal.h"
#include "lipscope/io/json_text.h"
#include "lipscope/record/records.h"
#include "lipscope/train/layer_constants.h"
#include "lipscope/train/next_token.h"
#include "lipscope/train/sliding_windows.h"
#include "lipscope/train/training_records.h"
#include "lipscope/train/weight_limits.h"

namespace lipscope {
namespace {

using nlohmann::ordered_json;
namespace fs = std::filesystem;

// a run that goes on must have been told the same; it may be told more steps
void require_same_run(const fs::path& folder,
                      const ModelDescription& description) {
  const ModelDescription before = read_description(folder);
  const ordered_json &was = before.training, &now = description.training;
  ordered_json all = was;
  all.update(now);
  for (const auto& [key, value] : all.items())
    if (was.value(key, ordered_json()) != now.value(key, ordered_json()))
      throw InputError(fmt::format(
          "{}: was trained with {} {}, and now it should be {}; go on as it "
          "began or take another folder",
          folder.string(), key, shown(was.value(key, ordered_json())),
          shown(now.value(key, ordered_json()))));
}

ordered_json member(const ordered_json& of, const char* name) {
  return of.is_object() ? of.value(name, ordered_json()) : ordered_json();
}

// What was seen up to the checkpoint. What came after it is done again, and the
// end of a run that now goes on was none.
void cut_metrics(const fs::path& path, Index step) {
  if (!fs::exists(path)) return;
  std::string kept;
  read_journal(path, [&](const ordered_json& line) {
    const ordered_json asked = line.value("parameters", ordered_json());
    const ordered_json x = member(asked, "x");
    if (!x.is_null() && !x.is_number())
      throw InputError(fmt::format("\"parameters.x\" is {}, expected a number",
                                   shown(nlohmann::json(x))));
    const ordered_json split = member(asked, "split");
    if (step > 0 && (x.is_null() || x <= static_cast<double>(step)) &&
        split != "test" && split != "last tenth" &&
        split != "newhouse25 windows")
      kept += json_line(line);
  });
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(kept)));
  file.commit();
}

class Run {
 public:
  Run(const fs::path& folder, const ModelDescription& description,
      const Corpus& corpus, const TrainingOptions& training,
      const RunOptions& options)
      : folder_(folder),
        corpus_(corpus),
        options_(options),
        limits_(training.limits),
        threads_(training.threads),
        subject_{.folder = folder.string(),
                 .model = description.config,
                 .seed = training.seed,
                 .limited = training.limits.lipschitz.has_value(),
                 .products = training.products},
        trainer_(description.config, training) {
    require(options.steps >= 1 && options.eval_every >= 1,
            "training: {} steps, an evaluation every {}", options.steps,
            options.eval_every);
    begin(description);
  }

  RunSummary run() {
    Journal journal(folder_ / "metrics.jsonl", Journal::Mode::append);
    const auto write = [&](const std::vector<ordered_json>& lines) {
      for (const ordered_json& line : lines) journal.append(line);
      if (options_.recorded)
        for (const ordered_json& line : lines) options_.recorded(line);
      for (const ordered_json& line : lines) check_sides(line);
    };
    if (at_.state.step == 0) write(figure_lines(subject_));
    RunSummary summary;
    auto start = std::chrono::steady_clock::now();
    double characters = 0;
    while (at_.state.step < options_.steps && summary.finished) {
      const StepReport report = trainer_.step(at_.state, corpus_.train);
      characters += static_cast<double>(trainer_.batch() *
                                        trainer_.model().config().context);
      if (options_.keep_going)
        summary.finished = options_.keep_going(at_.state.step, report);
      const bool last = at_.state.step == options_.steps;
      if (at_.state.step % options_.eval_every != 0 && !last) continue;

      const std::chrono::duration<double> spent =
          std::chrono::steady_clock::now() - start;
      Evaluation seen = evaluate(report);
      seen.characters_per_second = characters / spent.count();
      write(lines_of(subject_, seen));
      if (options_.seen) options_.seen(seen);
      write_checkpoint(folder_, layout(), at_);
      start = std::chrono::steady_clock::now();
      characters = 0;
    }
    if (!summary.finished) write_checkpoint(folder_, layout(), at_);
    summary.steps = at_.state.step;
    summary.best_step = at_.best_step;
    summary.best_valid_nll = at_.best_nll.value_or(NAN);
    summary.test_nll = NAN;
    summary.test_characters = static_cast<Index>(corpus_.test.size()) - 1;
    if (summary.finished) {
      const VectorOf<float> best = read_weights(best_file(), layout());
      summary.test_nll =
          score_of(trainer_.model(), best, corpus_.test, threads_).nll;
      const std::vector<int> unseen = last_tenth(corpus_);
      summary.last_tenth =
          score_of(trainer_.model(), at_.state.weights, unseen, threads_);
      summary.last_tenth_characters = static_cast<Index>(unseen.size()) - 1;
      const SlidingWindows windows;
      if (static_cast<Index>(unseen.size()) >= windows.characters())
        summary.newhouse25_windows =
            score_of(next_token(trainer_.model(), at_.state.weights), unseen,
                     trainer_.model().config().context, windows, threads_);
      summary.promised = require_within(limits_, trainer_.model(), best);
      write(lines_of(subject_, summary));
    }
    return summary;
  }

 private:
  const Layout& layout() { return trainer_.model().layout(); }
  fs::path best_file() const { return folder_ / "model.safetensors"; }

  void begin(const ModelDescription& description) {
    std::error_code unreadable;
    const bool there = fs::exists(folder_ / "config.json", unreadable);
    const bool anew = options_.anew && !options_.resume;
    if (there && !options_.resume && !anew)
      throw InputError(
          fmt::format("{}: holds a model already; --resume goes on with it",
                      folder_.string()));
    // what was learnt before goes first: it does not belong to what follows
    if (there && anew)
      for (const char* name : {"state.json", "model.safetensors"})
        fs::remove(folder_ / name, unreadable);
    if (there && !anew)
      require_same_run(folder_, description);
    else
      write_description(folder_, description);
    std::optional<Checkpoint> checkpoint = read_checkpoint(folder_, layout());
    at_ = checkpoint ? std::move(*checkpoint)
                     : Checkpoint{.state = trainer_.initial()};
    cut_metrics(folder_ / "metrics.jsonl", at_.state.step);
  }

  Evaluation evaluate(const StepReport& report) {
    LanguageModel<float>& model = trainer_.model();
    const VectorOf<float>& weights = at_.state.weights;
    // before anything is written: weights that break a promise are not kept
    const std::optional<PromisedConstant> promised =
        require_within(limits_, model, weights);
    const auto [nll, accuracy] =
        score_of(model, weights, corpus_.valid, threads_);
    if (!at_.best_nll || nll < *at_.best_nll) {
      write_weights(best_file(), layout(), weights);
      at_.best_nll = nll;
      at_.best_step = at_.state.step;
    }
    Evaluation seen{
        .step = at_.state.step,
        .train_nll = report.nll,
        .train_characters = trainer_.batch() * model.config().context,
        .valid_nll = nll,
        .valid_accuracy = accuracy,
        .valid_characters = static_cast<Index>(corpus_.valid.size()) - 1,
        .best_step = at_.best_step,
        .rate = report.rate,
        .gradient_norm = report.gradient_norm};
    seen.promised = promised;
    for (Index i = 0; i < model.config().layers; ++i)
      seen.layer_gradient_norms.push_back(
          layer_gradient_norm(layout(), trainer_.gradients(), i));
    const Index n =
        std::min(options_.measured_characters, model.config().context);
    if (n > 0)
      seen.attention = layer_constants(
          model, weights,
          std::span(corpus_.valid).first(static_cast<std::size_t>(n)),
          {.tolerance = 1e-3, .from_above = false, .threads = threads_});
    return seen;
  }

  fs::path folder_;
  const Corpus& corpus_;
  RunOptions options_;
  WeightLimits limits_;
  int threads_;
  TrainingSubject subject_;
  Trainer trainer_;
  Checkpoint at_;
};

}  // namespace

RunSummary train_in_folder(const fs::path& folder,
                           const ModelDescription& description,
                           const Corpus& corpus,
                           const TrainingOptions& training,
                           const RunOptions& options) {
  return Run(folder, description, corpus, training, options).run();
}

}  // namespace lipscope
