#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>

#include "lipscope/core/errors.h"
#include "lipscope/experiments/judged_model.h"
#include "lipscope/experiments/learning.h"
#include "lipscope/experiments/newhouse_identity.h"
#include "lipscope/experiments/ngram_baselines.h"
#include "lipscope/train/sliding_windows.h"

namespace lipscope {
namespace {

struct FrontierSize {
  Index layers, width, heads, mlp_width, context, batch, steps;
  Index their_context, their_mlp_width;
  std::vector<double> constants;  // promised, between root mean squares
  Index generated;
};

const FrontierSize small_size{.layers = 2,
                              .width = 64,
                              .heads = 4,
                              .mlp_width = 128,
                              .context = 32,
                              .batch = 16,
                              .steps = 300,
                              .their_context = 32,
                              .their_mlp_width = 256,
                              .constants = {2.0, 10.0},
                              .generated = 200'000};
const FrontierSize full_size{.layers = 3,
                             .width = 256,
                             .heads = 4,
                             .mlp_width = 512,
                             .context = 64,
                             .batch = 64,
                             .steps = 2000,
                             .their_context = 256,
                             .their_mlp_width = 1024,
                             .constants = {2.0, 10.0, 30.0},
                             .generated = 1'000'000};

// ---- what is trained

const std::string of_position = "position heads",
                  beside = "position heads and one that compares",
                  theirs = "Newhouse25's architecture, proved here",
                  by_formula = "Newhouse25's architecture, by its formula";

// how all of them learn
TrainingOptions training_of(const FrontierSize& size, Index steps,
                            const ExperimentOptions& o) {
  TrainingOptions t{.batch = size.batch,
                    .schedule = {.rate = 0.02,
                                 .warmup = 0,
                                 .after = Schedule::After::linear,
                                 .steps = steps},
                    .optimizer = Optimizer::muon,
                    .seed = o.seed,
                    .threads = o.threads};
  t.muon.rate = 0.05;
  t.limits.norm = Norm::token;
  t.limits.rule = SingularValues::soft;
  t.limits.longest_token = std::sqrt(static_cast<double>(size.width));
  return t;
}

LanguageModelConfig promised_model(const FrontierSize& size, bool compares) {
  return {.mixer = compares ? Mixer::dot : Mixer::position,
          .layers = size.layers,
          .width = size.width,
          .heads = size.heads,
          .context = size.context,
          .position_heads = compares ? size.heads - 1 : size.heads,
          .heads_apart = true,
          .positions = Positions::none,
          .hidden = size.mlp_width,
          .activation = Activation::max_min,
          .norm = NormPlace::none,
          .join = Join::none,
          .head_bias = true};
}

// rotary positions, no norms, convex residuals with a share of one over the
// number of sub-layers
LanguageModelConfig their_model(const FrontierSize& size) {
  return {.mixer = Mixer::dot,
          .layers = size.layers,
          .width = size.width,
          .heads = size.heads,
          .context = size.their_context,
          .positions = Positions::rotary,
          .hidden = size.their_mlp_width,
          .activation = Activation::gelu,
          .norm = NormPlace::none,
          .join = Join::convex,
          .join_share = 0.5 / static_cast<double>(size.layers)};
}

std::vector<std::pair<std::string, TrainingPlan>> settings(
    const FrontierSize& size, const ExperimentOptions& o) {
  const Index steps = o.steps > 0 ? o.steps : size.steps;
  TrainingPlan plan{.training = training_of(size, steps, o),
                    .steps = steps,
                    .eval_every = steps};
  std::vector<std::pair<std::string, TrainingPlan>> all;
  plan.model = promised_model(size, false);
  all.emplace_back(of_position, plan);
  plan.model = promised_model(size, true);
  all.emplace_back(beside, plan);
  plan.model = their_model(size);
  plan.training.limits.matrices = MatrixLimits::newhouse25;
  plan.training.zero_outputs = true;
  all.emplace_back(theirs, plan);
  return all;
}

// the series that a folder belongs to
std::string series_of(const LanguageModelConfig& c) {
  if (is_newhouse25(c)) return theirs;
  if (c.mixer == Mixer::position) return of_position;
  if (c.mixer == Mixer::dot && c.position_heads == c.heads - 1) return beside;
  return c.position_heads == 0
             ? name_of(c.mixer)
             : fmt::format("{} position heads and {} that compare ({})",
                           c.position_heads, c.heads - c.position_heads,
                           name_of(c.mixer));
}

// ---- what is drawn

// One of the four figures: loss or share predicted, on the whole last tenth or
// in Newhouse25's windows.
struct Judgement {
  bool windows = false, share = false;

  Quantity quantity() const { return share ? Quantity::share : Quantity::loss; }
  std::string value_of() const {
    return share ? "share of characters that were the likeliest"
                 : "loss in nats a character";
  }
  double value(const TextScore& s) const { return share ? s.accuracy : s.nll; }
  double value(const JudgedModel& m) const {
    return value(windows ? m.newhouse25_windows.value() : m.last_tenth);
  }
};

constexpr Judgement all_judgements[] = {
    {}, {.share = true}, {.windows = true}, {.windows = true, .share = true}};

Figure figure_of(const Judgement& v) {
  const std::string where =
      v.windows ? "Newhouse25's windows: 1,280 of 256 characters that begin at "
                  "each of the first characters of the last tenth; a model "
                  "with a shorter context predicts from as many characters of "
                  "the window as it reads"
                : "the whole last tenth";
  return {
      .name =
          fmt::format("newhouse-shakespeare{}{}", v.windows ? ", windows" : "",
                      v.share ? ", predicted" : ""),
      .title =
          fmt::format("{} against the proved constant, {}",
                      v.share ? "Characters predicted" : "Loss",
                      v.windows ? "Newhouse25's windows" : "whole last tenth"),
      .explanation = fmt::format(
          "Models learn nine tenths of the text; the last step's weights are "
          "judged by {}. The constant is from the embeddings, of root mean "
          "square at most 1, to the logits, in the largest token norm between "
          "root mean squares. It is proved for the weights as they are; "
          "'by its formula' puts the same models where the formula of "
          "Newhouse25's released code puts them, which is not a proof. n-grams "
          "are counted in the nine tenths and have no constant: their level "
          "is drawn from end to end.{}",
          where,
          v.windows ? " What Newhouse25 published is read off that paper, "
                      "and is about tiny Shakespeare."
                    : ""),
      .x_name = "constant, token norm, RMS units",
      .y_name = v.share ? "share predicted" : "nats a character",
      .log_x = true};
}

// Newhouse25's points: constant, loss, share predicted where it is given
struct Published {
  const char* series;
  double constant, nll;
  std::optional<double> accuracy;
};
const Published published[] = {
    {"Newhouse25, normalised weights (published)", 0.89, 1.77, 0.467},
    {"Newhouse25, normalised weights (published)", 1.99, 1.49, 0.543},
    {"Newhouse25, normalised weights (published)", 9.6e4, 1.23, 0.615},
    {"Newhouse25, soft cap (published)", 1.64, 1.35, {}},
    {"Newhouse25, soft cap (published)", 3.05, 1.29, {}}};

class Drawing {
 public:
  Drawing(const Corpus& corpus, const ExperimentOptions& options,
          const Notebook& book)
      : corpus_(corpus), o_(options), book_(book), counted_(corpus) {
    has_windows_ = corpus.valid.size() + corpus.test.size() >=
                   static_cast<std::size_t>(SlidingWindows{}.characters());
  }

  // all figures, in their order
  void open_all() {
    for_judgements([&](const Judgement& v) { book_.open(figure_of(v)); });
  }

  // a model in all figures; `of` is called once, when an answer is wanted
  void model(const std::string& series, double x, const Record& asked,
             bool formula, const std::function<JudgedModel()>& of) {
    std::optional<JudgedModel> known;
    for_judgements([&](const Judgement& v) {
      book_.open(figure_of(v));
      Record question = asked;
      question.quantity = v.quantity();
      question.value_of = v.value_of();
      const auto answer = [&](Record& r, bool at_formula) {
        if (!known) known = of();
        r.value = v.value(*known);
        r.details.update(details_of(*known));
        r.details["drawn_at"] = at_formula ? known->newhouse25_formula.value()
                                           : known->rms_constant();
      };
      book_.ask({series, x}, question, [&](Record& r) { answer(r, false); });
      if (formula)
        book_.ask({by_formula, x}, question,
                  [&](Record& r) { answer(r, true); });
    });
  }

  void paper() {
    for_judgements([&](const Judgement& v) {
      if (!v.windows) return;
      book_.open(figure_of(v));
      for (const Published& p : published) {
        if (v.share && !p.accuracy) continue;
        Record r = attention_question("Newhouse25, as published");
        r.map = "model";
        r.norm.reset();
        r.mask = name_of(Mask::causal);
        r.n = r.d = 256;
        r.scope = Scope::test_text;
        r.quantity = v.quantity();
        r.value_of = v.value_of();
        book_.ask({p.series, p.constant}, r, [&](Record& answer) {
          answer.value = v.share ? *p.accuracy : p.nll;
          answer.details["source"] =
              "read off the paper; its constant is by its own formula";
        });
      }
    });
  }

  void ngrams() {
    for_judgements([&](const Judgement& v) {
      book_.open(figure_of(v));
      for (const Index n : NGramBaselines::shown)
        for (const double end : {0.5, v.windows ? 1e5 : 100.0})
          book_.ask(
              {fmt::format("{}-grams", n), end},
              ngram_question(n, corpus_, v.quantity(), v.value_of()),
              [&](Record& r) {
                const auto& scores = v.windows ? counted_.newhouse25_scores()
                                               : counted_.last_tenth_scores();
                r.value = v.value(scores[static_cast<std::size_t>(n - 1)]);
              });
    });
  }

 private:
  void for_judgements(const std::function<void(const Judgement&)>& each) const {
    for (const Judgement& v : all_judgements)
      if (has_windows_ || !v.windows) each(v);
  }

  static nlohmann::ordered_json details_of(const JudgedModel& m) {
    nlohmann::ordered_json d = {{"proved_rms", m.rms_constant()},
                                {"proved_token_norm", m.token_constant},
                                {"proved_two_norm", m.two_constant},
                                {"longest_token", m.longest_token},
                                {"last_tenth_nll", m.last_tenth.nll},
                                {"last_tenth_accuracy", m.last_tenth.accuracy}};
    if (m.newhouse25_windows)
      d.update({{"newhouse25_nll", m.newhouse25_windows->nll},
                {"newhouse25_accuracy", m.newhouse25_windows->accuracy}});
    if (m.newhouse25_formula) d["newhouse25_formula"] = *m.newhouse25_formula;
    return d;
  }

  const Corpus& corpus_;
  const ExperimentOptions& o_;
  const Notebook& book_;
  NGramBaselines counted_;
  bool has_windows_ = false;
};

Record question_of(const LanguageModelConfig& c, const std::string& model) {
  Record r = attention_question(model);
  r.map = "model";
  r.kind = name_of(c.mixer);
  r.mask = name_of(Mask::causal);
  r.norm.reset();
  r.n = c.context;
  r.d = c.width;
  r.scope = Scope::test_text;
  r.dtype = NumberFormat::f32;
  return r;
}

}  // namespace

void newhouse_shakespeare(const ExperimentOptions& o, const Notebook& book) {
  const FrontierSize& size = o.full ? full_size : small_size;
  const Corpus corpus = corpus_for(o, size.generated, size.their_context);
  const double characters = static_cast<double>(corpus.vocabulary.size());
  Drawing drawing(corpus, o, book);
  drawing.open_all();
  drawing.ngrams();
  if (!o.text.empty()) drawing.paper();  // which is about a text, not any one
  for (const std::string& folder : o.runs) {
    const TrainedFolder run = open_trained(folder, corpus);
    Record r = question_of(run.config, folder);
    r.parameters = {{"checkpoint_sha256", run.sha256},
                    {"steps", static_cast<double>(run.steps)},
                    {"layers", static_cast<double>(run.config.layers)}};
    // x is not known before: all folders are asked for at 0
    drawing.model(series_of(run.config), 0.0, r, is_newhouse25(run.config),
                  [&] { return judged(folder, corpus, o.threads); });
  }
  newhouse_identity(o, book);
  if (!o.runs.empty()) return;  // these are shown, and nothing is trained
  for (const double constant : size.constants)
    for (auto& [series, plan] : settings(size, o)) {
      plan.model.characters = corpus.vocabulary.size();
      plan.training.limits.lipschitz =
          constant * std::sqrt(characters / static_cast<double>(size.width));
      const LanguageModelConfig& c = plan.model;
      Record r =
          question_of(c, fmt::format("{}, {} layers, width {}, on {}", series,
                                     c.layers, c.width, text_name(o)));
      r.parameters = {{"layers", static_cast<double>(c.layers)},
                      {"batch", static_cast<double>(plan.training.batch)},
                      {"steps", static_cast<double>(plan.steps)},
                      {"learning_rate", plan.training.schedule.rate},
                      {"muon_rate", plan.training.muon.rate}};
      drawing.model(
          series, constant, r, is_newhouse25(c),
          [&, &series = series, &plan = plan] {
            const TrainingResult result = train_model(plan, corpus, book.tell);
            if (result.diverged)
              throw RunError(fmt::format("{} diverged at step {}", series,
                                         *result.diverged));
            LanguageModel<float> model(plan.model);
            return judged(model, result.last_weights, corpus, o.threads);
          });
    }
}

}  // namespace lipscope
