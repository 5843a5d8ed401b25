#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "lipscope/control/certifier.h"
#include "lipscope/core/parallel.h"
#include "lipscope/experiments/generated_text.h"
#include "lipscope/experiments/shared_steps.h"
#include "lipscope/report/median.h"
#include "lipscope/train/model_stack.h"
#include "lipscope/train/next_token.h"
#include "lipscope/train/trainer.h"

namespace lipscope {
namespace {

struct Size {
  Index layers, width, heads, context, batch, steps, warmup, positions;
  double rate;
  Index generated;  // characters of the text where none is given
};

const Size small_histogram{.layers = 2,
                           .width = 64,
                           .heads = 4,
                           .context = 64,
                           .batch = 16,
                           .steps = 300,
                           .warmup = 30,
                           .positions = 256,
                           .rate = 3e-3,
                           .generated = 200'000};
const Size large_histogram{.layers = 4,
                           .width = 128,
                           .heads = 8,
                           .context = 64,
                           .batch = 32,
                           .steps = 5000,
                           .warmup = 100,
                           .positions = 4096,
                           .rate = 3e-3,
                           .generated = 1'000'000};

struct Subject {
  std::string name;
  Mixer mixer;
  NormPlace norm;
  std::optional<double> limit = {};  // of the constant to the logits
};

const std::vector<Subject>& subjects() {
  static const std::vector<Subject> all = {
      {"dot-product, LayerNorm", Mixer::dot, NormPlace::post},
      {"L2, no norm", Mixer::l2, NormPlace::none},
      {"L2, constant at most 300", Mixer::l2, NormPlace::none, 300.0},
      {"L2, constant at most 30", Mixer::l2, NormPlace::none, 30.0},
      {"L2, constant at most 3", Mixer::l2, NormPlace::none, 3.0}};
  return all;
}

// what came of a model: log10 of both sides at each position
struct Outcome {
  std::vector<double> proved, attacked;
  double token = 0.0;     // root mean square of |x|, what layer 0 reads
  double test_nll = 0.0;  // nats a character
  double right = 0.0;     // share of the positions that are predicted right
};

LanguageModelConfig config_of(const Subject& subject, const Size& size,
                              const Corpus& corpus) {
  return {.mixer = subject.mixer,
          .characters = corpus.vocabulary.size(),
          .layers = size.layers,
          .width = size.width,
          .heads = size.heads,
          .context = size.context,
          .hidden = 4 * size.width,
          .norm = subject.norm};
}

// trained, and asked about the test text
Outcome outcome_of(const Subject& subject, const Size& size, Index steps,
                   const Corpus& corpus, const ExperimentOptions& o,
                   const Notebook& book) {
  const LanguageModelConfig config = config_of(subject, size, corpus);
  Trainer trainer(config,
                  {.batch = size.batch,
                   .schedule = {.rate = size.rate, .warmup = size.warmup},
                   .limits = {.lipschitz = subject.limit},
                   .seed = o.seed,
                   .threads = o.threads});
  TrainingState state = trainer.initial();
  for (Index step = 0; step < steps; ++step) {
    book.tell(fmt::format("{}: step {} of {}", subject.name, step, steps));
    trainer.step(state, corpus.train);
  }
  Outcome outcome;
  outcome.test_nll =
      score_of(trainer.model(), state.weights, corpus.test, o.threads).nll;

  const LanguageModel<double> model(config);
  const Vector weights = state.weights.cast<double>();
  const Certifier certifier(stack_of(model, weights));
  const auto known = static_cast<Index>(corpus.test.size()) - 1;
  const Index count = std::min(size.positions, known);
  outcome.proved.resize(count);
  outcome.attacked.resize(count);
  std::vector<char> right(count);
  double squares = 0.0;
  Index done = 0;
  for (const Batch& window : all_windows(corpus.test, 1, size.context)) {
    if (done == count) break;
    const Certifier::Sequence sequence = certifier.sequence(
        model.embedded(weights, window.characters, {.length = window.length}));
    const Index here = std::min(window.length, count - done);
    squares += sequence.x.topRows(here).squaredNorm();
    book.tell(fmt::format("{}: position {} of {}", subject.name, done, count));
    parallel_for(here, o.threads, [&](Index i) {
      const Robustness found = certifier.at(
          sequence, i,
          {.seed =
               Rng(o.seed).split(static_cast<std::uint64_t>(done + i)).next()});
      outcome.proved[done + i] = found.certified.log10;
      outcome.attacked[done + i] =
          found.attack ? std::log10(found.attack->distance) : INFINITY;
      right[done + i] = found.certified.character == window.targets[i];
    });
    done += here;
  }
  outcome.token = std::sqrt(squares / static_cast<double>(count));
  outcome.right =
      static_cast<double>(std::count(right.begin(), right.end(), 1)) /
      static_cast<double>(count);
  return outcome;
}

Record record_of(const Subject& subject, const Size& size, Index steps,
                 const ExperimentOptions& o) {
  Record r = attention_question(fmt::format(
      "{} of {} layers, width {}, norm {}, learnt on {}",
      name_of(subject.mixer), size.layers, size.width, name_of(subject.norm),
      o.text.empty() ? "generated text" : o.text_name));
  r.map = "model";
  r.kind = name_of(attention_kind(subject.mixer));
  r.mask = name_of(Mask::causal);
  r.n = size.context;
  r.d = size.width;
  r.scope = Scope::test_text;
  r.parameters = {{"steps", static_cast<double>(steps)},
                  {"positions", static_cast<double>(size.positions)}};
  r.quantity = Quantity::share;
  r.lower_is = Evidence::proved;
  r.upper_is = Evidence::found;
  return r;
}

// the share of predictions that nothing within the radius can change
void set_shares(Record& r, const Outcome& outcome, double radius) {
  const double log = std::log10(radius);
  const auto size = static_cast<double>(outcome.proved.size());
  const auto holds = std::count_if(outcome.proved.begin(), outcome.proved.end(),
                                   [&](double at) { return at >= log; });
  const auto falls =
      std::count_if(outcome.attacked.begin(), outcome.attacked.end(),
                    [&](double at) { return at <= log; });
  r.lower = static_cast<double>(holds) / size;
  r.lower_by = Procedure::deviation;
  r.upper = 1.0 - static_cast<double>(falls) / size;
  r.upper_by = Procedure::attack;
  r.details = {{"test_nll", outcome.test_nll},
               {"right", outcome.right},
               {"token_rms", outcome.token},
               {"median_proved_log10", median_log10(outcome.proved)},
               {"median_attacked_log10", median_log10(outcome.attacked)}};
}

}  // namespace

void robustness_histogram(const ExperimentOptions& o, const Notebook& book) {
  const Size& size = o.full ? large_histogram : small_histogram;
  const Index steps = o.steps > 0 ? o.steps : size.steps;
  std::optional<Corpus> corpus;  // read when the first row is wanted
  std::vector<std::optional<Outcome>> outcomes(subjects().size());

  const std::string what =
      "After each character of the test text a model predicts the next. From "
      "below the share of these predictions that are proved to stay the same "
      "under every change of the embeddings of this size (Frobenius norm), "
      "from above those that an attack did not change. ";
  const struct {
    Figure figure;
    bool relative;
  } figures[] = {
      {{.name = "robustness-histogram",
        .title = "How many predictions hold",
        .explanation = what +
                       "Models are limited to a constant from the input of "
                       "layer 0 to the logits.",
        .x_name = "size of the change",
        .y_name = "share of the predictions that hold",
        .log_x = true},
       false},
      {{.name = "robustness-histogram, relative",
        .title = "How many predictions hold, in units of a token",
        .explanation = what +
                       "The change is measured by the root mean square of what "
                       "layer 0 reads of a character: models whose constant is "
                       "limited have longer embeddings.",
        .x_name = "size of the change over a token's",
        .y_name = "share of the predictions that hold",
        .log_x = true},
       true}};
  for (const auto& [figure, relative] : figures) {
    book.open(figure);
    for (std::size_t k = 0; k < subjects().size(); ++k) {
      const Subject& subject = subjects()[k];
      const Record question = record_of(subject, size, steps, o);
      for (const double x : geometric(1e-8, 10.0, 19))
        book.ask(
            {subject.name, x}, question, [&, relative = relative](Record& r) {
              if (!corpus)
                corpus = o.text.empty()
                             ? corpus_of(generated_text(size.generated),
                                         size.context, "generated text")
                             : corpus_of(o.text, size.context, o.text_name);
              if (!outcomes[k])
                outcomes[k] =
                    outcome_of(subject, size, steps, *corpus, o, book);
              set_shares(r, *outcomes[k],
                         relative ? x * outcomes[k]->token : x);
            });
    }
  }
}

}  // namespace lipscope
