#include "lipscope/train/training_run.h"

#include <chrono>
#include <cmath>
#include <numbers>
#include <span>

#include "lipscope/core/errors.h"
#include "lipscope/io/atomic_file.h"
#include "lipscope/io/journal.h"
#include "lipscope/io/json_text.h"
#include "lipscope/train/layer_constants.h"

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

// what was seen up to the checkpoint; what came after it is done again
void cut_metrics(const fs::path& path, Index step) {
  if (!fs::exists(path)) return;
  std::string kept;
  read_journal(path, [&](const ordered_json& line) {
    if (line.value("step", Index{0}) <= step) kept += line.dump() + "\n";
  });
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(kept)));
  file.commit();
}

ordered_json to_json(const LayerConstant& c) {
  ordered_json json = {{"layer", c.layer},
                       {"map", "attn"},
                       {"mask", "causal"},
                       {"norm", "2"},
                       {"n", c.n},
                       {"radius_max", c.radius},
                       {"lower", c.measured.lower},
                       {"lower_by", c.measured.lower_by},
                       {"scope", "at this input"},
                       {"residual", c.measured.residual},
                       {"converged", c.measured.converged}};
  json["upper"] = nullptr;
  if (c.above) {
    json["upper"] = c.above->value;
    json["upper_log10"] = c.above->log10;
    json["upper_by"] = c.above->name;
    json["upper_scope"] = c.above->scope;
  }
  return json;
}

ordered_json to_json(const PromisedConstant& c, Index context) {
  return {{"from", "input of layer 0"},
          {"to", "logits"},
          {"mask", "causal"},
          {"norm", "2"},
          {"n", context},
          {"upper", c.certified},
          {"upper_by", "stack_constant"},
          {"scope", c.scope},
          {"limit", c.limit},
          {"longest_token", c.longest_token}};
}

// |g| of all tensors of a layer, "h.3." in front of their names
double layer_gradient_norm(const Layout& layout, const VectorOf<float>& g,
                           Index layer) {
  const std::string prefix = fmt::format("h.{}.", layer);
  double squares = 0.0;
  for (const Layout::Tensor& t : layout.tensors())
    if (t.name.starts_with(prefix))
      squares += std::pow(gradient_norm(g, t.slot.offset, t.slot.size()), 2);
  return std::sqrt(squares);
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
        trainer_(description.config, training) {
    require(options.steps >= 1 && options.eval_every >= 1,
            "training: {} steps, an evaluation every {}", options.steps,
            options.eval_every);
    begin(description);
  }

  RunSummary run() {
    Journal metrics(folder_ / "metrics.jsonl", Journal::Mode::append);
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
      const ordered_json line = evaluate(report, characters / spent.count());
      metrics.append(line);
      if (options_.seen) options_.seen(line);
      write_checkpoint(folder_, layout(), at_);
      start = std::chrono::steady_clock::now();
      characters = 0;
    }
    if (!summary.finished) write_checkpoint(folder_, layout(), at_);
    summary.steps = at_.state.step;
    summary.best_step = at_.best_step;
    summary.best_valid_nll = at_.best_nll.value_or(NAN);
    summary.test_nll = NAN;
    if (summary.finished) {
      const VectorOf<float> best = read_weights(best_file(), layout());
      summary.test_nll =
          mean_nll(trainer_.model(), best, corpus_.test, threads_);
      summary.promised = require_within(limits_, trainer_.model(), best);
    }
    return summary;
  }

 private:
  const Layout& layout() { return trainer_.model().layout(); }
  fs::path best_file() const { return folder_ / "model.safetensors"; }

  void begin(const ModelDescription& description) {
    const bool there = fs::exists(folder_ / "config.json");
    if (there && !options_.resume)
      throw InputError(
          fmt::format("{}: holds a model already; --resume goes on with it",
                      folder_.string()));
    if (there)
      require_same_run(folder_, description);
    else
      write_description(folder_, description);
    std::optional<Checkpoint> checkpoint = read_checkpoint(folder_, layout());
    at_ = checkpoint ? std::move(*checkpoint)
                     : Checkpoint{.state = trainer_.initial()};
    cut_metrics(folder_ / "metrics.jsonl", at_.state.step);
  }

  ordered_json evaluate(const StepReport& report, double speed) {
    LanguageModel<float>& model = trainer_.model();
    const VectorOf<float>& weights = at_.state.weights;
    // before anything is written: weights that break a promise are not kept
    const std::optional<PromisedConstant> promised =
        require_within(limits_, model, weights);
    const double nll = mean_nll(model, weights, corpus_.valid, threads_);
    if (!at_.best_nll || nll < *at_.best_nll) {
      write_weights(best_file(), layout(), weights);
      at_.best_nll = nll;
      at_.best_step = at_.state.step;
    }
    ordered_json line = {{"step", at_.state.step},
                         {"train_nll", report.nll},
                         {"valid_nll", nll},
                         {"valid_bpc", nll / std::numbers::ln2},
                         {"best_step", at_.best_step},
                         {"learning_rate", report.rate},
                         {"gradient_norm", report.gradient_norm},
                         {"characters_per_second", speed}};
    if (promised) line["constant"] = to_json(*promised, model.config().context);
    ordered_json norms = ordered_json::array();
    for (Index i = 0; i < model.config().layers; ++i)
      norms.push_back(layer_gradient_norm(layout(), trainer_.gradients(), i));
    line["layer_gradient_norms"] = std::move(norms);
    line["attention"] = ordered_json::array();
    const Index n =
        std::min(options_.measured_characters, model.config().context);
    if (n > 0)
      for (const LayerConstant& c : layer_constants(
               model, weights,
               std::span(corpus_.valid).first(static_cast<std::size_t>(n)),
               {.tolerance = 1e-3, .threads = threads_}))
        line["attention"].push_back(to_json(c));
    return line;
  }

  fs::path folder_;
  const Corpus& corpus_;
  RunOptions options_;
  WeightLimits limits_;
  int threads_;
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
