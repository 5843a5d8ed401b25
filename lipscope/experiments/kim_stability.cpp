#include "lipscope/experiments/learning.h"

namespace lipscope {
namespace {

struct Size {
  Index width, heads, context, batch, steps;
  double rate;
  std::vector<Index> depths;
  Index generated;  // characters of the text where none is given
};

const Size small{.width = 64,
                 .heads = 4,
                 .context = 32,
                 .batch = 16,
                 .steps = 150,
                 .rate = 1e-3,
                 .depths = {2, 6, 10, 14, 18},
                 .generated = 200'000};
const Size large{.width = 512,
                 .heads = 8,
                 .context = 256,
                 .batch = 64,
                 .steps = 5000,
                 .rate = 1e-3,
                 .depths = {2, 4, 6, 8, 10, 12, 14, 16, 18},
                 .generated = 2'000'000};

constexpr Mixer in_order[] = {Mixer::dot, Mixer::l2_untied, Mixer::l2,
                              Mixer::contractive_l2};

// nats below the unigram loss, or a model has not learnt
constexpr double learnt_by = 0.1;

Figure against_depth(const Size& size, Index steps) {
  return {.name = "kim-stability",
          .title = "Deep models at a fixed learning rate, without warm-up",
          .explanation = fmt::format(
              "The loss of the validation text after {} steps of AdamW at {} "
              "from the first step on, gradients not clipped; blocks are "
              "residual attention, LayerNorm, residual MLP, LayerNorm. "
              "'unigram' is the loss of who knows only how frequent each "
              "character is. A model that is not {} nats below that has not "
              "learnt, and has the status not-converged; one whose loss or "
              "gradient was not finite has no value. One seed.",
              steps, size.rate, learnt_by),
          .x_name = "layers",
          .y_name = "validation loss, nats a character"};
}

Figure gradients(bool first) {
  const char* layer = first ? "first" : "last";
  return {.name = fmt::format("kim-stability, {} layer", layer),
          .title = fmt::format(
              "Gradients of the {} layer at a fixed learning rate", layer),
          .explanation = fmt::format(
              "The 2-norm of the gradient of a batch's loss by the weights of "
              "the {} layer, as a mean over the steps of the runs above.",
              layer),
          .x_name = "layers",
          .y_name = "norm of the gradient",
          .log_y = true};
}

}  // namespace

void kim_stability(const ExperimentOptions& o, const Notebook& book) {
  const Size& size = o.full ? large : small;
  const Index steps = o.steps > 0 ? o.steps : size.steps;
  const Corpus corpus = corpus_for(o, size.generated, size.context);
  const double unigram = unigram_nll(corpus);
  for (const Index depth : size.depths) {
    std::vector<Lesson> lessons;
    for (const Mixer mixer : in_order)
      lessons.push_back(
          {.model = {.mixer = mixer,
                     .characters = corpus.vocabulary.size(),
                     .layers = depth,
                     .width = size.width,
                     .heads = size.heads,
                     .context = size.context,
                     .hidden = 4 * size.width},
           .training = {.batch = size.batch,
                        .schedule = {.rate = size.rate,
                                     .warmup = 0,
                                     .after = Schedule::After::fixed},
                        .clip = 0.0,
                        .seed = o.seed,
                        .threads = o.threads},
           .steps = steps,
           .eval_every = steps});
    School school(lessons, corpus, o, book);
    const auto has_learnt = [&](const Learnt& learnt) {
      return learnt.seen.back().valid_nll < unigram - learnt_by;
    };
    for (std::size_t of = 0; of < lessons.size(); ++of) {
      book.open(against_depth(size, steps));
      Row loss = school.question(of, "loss in nats a character",
                                 "the validation text");
      loss.x = static_cast<double>(depth);
      school.ask(of, loss, [&](Row& r, const Learnt& learnt) {
        r.value = learnt.seen.back().valid_nll;
        r.converged = has_learnt(learnt);
        r.details = {{"unigram", unigram},
                     {"gradient_norm", learnt.gradient_norm}};
      });
      Row norm = school.question(of, "2-norm of the gradient of a layer",
                                 "the batches of all steps, their mean");
      norm.x = static_cast<double>(depth);
      for (const bool first : {true, false}) {
        book.open(gradients(first));
        norm.layer = first ? 0 : depth - 1;
        school.ask(of, norm, [&](Row& r, const Learnt& learnt) {
          r.value = first ? learnt.first_layer_norm : learnt.last_layer_norm;
          r.converged = has_learnt(learnt);
        });
      }
    }
    book.open(against_depth(size, steps));
    const Row frequencies{.series = "unigram",
                          .x = static_cast<double>(depth),
                          .model = "frequencies of characters",
                          .map = "model",
                          .mixer = "unigram",
                          .norm = {},
                          .n = 1,
                          .d = corpus.vocabulary.size(),
                          .scope = "the validation text",
                          .value_of = "loss in nats a character"};
    book.ask(frequencies, [&](Row& r) { r.value = unigram; });
  }
}

}  // namespace lipscope
