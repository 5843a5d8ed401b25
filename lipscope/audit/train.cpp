#include "lipscope/audit/train.h"

#include <fmt/format.h>

#include <span>
#include <utility>

#include "lipscope/core/errors.h"
#include "lipscope/io/atomic_file.h"
#include "lipscope/io/sha256.h"
#include "lipscope/io/text_file.h"
#include "lipscope/train/training_memory.h"
#include "lipscope/train/training_run.h"
#include "lipscope/train/weight_limits.h"
#include "lipscope/train/zero_outputs.h"

namespace lipscope::audit {
namespace {

using nlohmann::ordered_json;

// all that the weights and metrics.jsonl depend on, but for the steps
ordered_json settings_of(const TrainRequest& o, const std::string& text) {
  const TrainingOptions& t = o.training;
  ordered_json json = {{"text_sha256", sha256_text(text)},
                       {"model", name_of(o.model.mixer)},
                       {"layers", o.model.layers},
                       {"width", o.model.width},
                       {"context", o.model.context}};
  if (o.model.mixer != Mixer::lstm) {
    json["heads"] = o.model.heads;
    json["mlp-width"] = o.model.hidden;
    json["norm"] = name_of(o.model.norm);
    json["activation"] = name_of(o.model.activation);
    if (o.model.contraction) json["contraction"] = *o.model.contraction;
    if (o.model.division != Division::layer)
      json["divide"] = name_of(o.model.division);
    if (o.model.quiet_gain) json["quiet-gain"] = *o.model.quiet_gain;
    json["position-heads"] = o.model.position_heads;
    json["heads-apart"] = o.model.heads_apart;
    json["positions"] = name_of(o.model.positions);
    json["residual"] = name_of(o.model.join);
    if (o.model.join == Join::convex)
      json["residual-share"] = o.model.join_share;
    json["head-bias"] = o.model.head_bias;
  }
  json.update({{"batch", t.batch},
               {"lr", t.schedule.rate},
               {"warmup", t.schedule.warmup},
               {"schedule", name_of(t.schedule.after)},
               {"weight-decay", t.adamw.weight_decay},
               {"dropout", t.dropout},
               {"clip", t.clip},
               {"eval-every", o.run.eval_every},
               {"measure", o.run.measured_characters},
               {"seed", t.seed}});
  json["optimizer"] = name_of(t.optimizer);
  if (t.optimizer == Optimizer::muon) json["muon-lr"] = t.muon.rate;
  // the rate of every step depends on the last one
  if (t.schedule.after == Schedule::After::linear) json["steps"] = o.run.steps;
  if (t.products != Precision::high) json["precision"] = name_of(t.products);
  if (t.zero_outputs) json["zero-outputs"] = true;
  const WeightLimits& l = t.limits;
  if (l.lipschitz)
    json.update(
        {{"max-lipschitz", *l.lipschitz}, {"promise", name_of(l.norm)}});
  if (l.spectral) json["spectral-cap"] = *l.spectral;
  if (l.longest_token) json["longest-token"] = *l.longest_token;
  if (l.rule != SingularValues::free) {
    json["singular-values"] = name_of(l.rule);
    if (l.matrices != MatrixLimits::one)
      json["matrix-limits"] = name_of(l.matrices);
    if (compares(o.model.mixer)) json["score-limit"] = l.scores;
  }
  return json;
}

// one run in that folder
RunSummary run_in(const std::string& folder, const TrainRequest& request,
                  const std::string& text, const Corpus& corpus,
                  const TrainWatch& watch) {
  if (watch.begins) watch.begins(folder);
  RunOptions run = request.run;
  run.keep_going = watch.keep_going;
  run.seen = watch.evaluated;
  run.recorded = watch.record;
  return train_in_folder(folder,
                         {.config = request.model,
                          .vocabulary = corpus.vocabulary,
                          .training = settings_of(request, text)},
                         corpus, request.training, run);
}

// what follows from the rest
void complete(TrainRequest& o) {
  if (o.model.mixer == Mixer::position) o.model.position_heads = o.model.heads;
  if (o.model.position_heads > 0) o.model.heads_apart = true;
  o.model.hidden = o.mlp_width.value_or(4 * o.model.width);
  o.training.schedule.steps = o.run.steps;
}

void require_allowed(const TrainRequest& request) {
  const WeightLimits& limits = request.training.limits;
  if (request.model.join == Join::convex && request.model.join_share == 1.0)
    throw InputError(
        "--residual convex: give --residual-share, a number between 0 and 1");
  try {
    LanguageModelConfig model = request.model;
    model.characters = 2;
    require_sound(model);
  } catch (const std::invalid_argument& wrong) {
    throw InputError(wrong.what());
  }
  if (const std::string why = objection(limits, request.model); !why.empty())
    throw InputError(fmt::format("{}: {}",
                                 limits.lipschitz       ? "--max-lipschitz"
                                 : limits.longest_token ? "--longest-token"
                                 : limits.spectral      ? "--spectral-cap"
                                 : limits.matrices == MatrixLimits::newhouse25
                                     ? "--matrix-limits"
                                     : "--singular-values",
                                 why));
  if (request.training.zero_outputs)
    if (const std::string why =
            objection_to_zero_outputs(request.model, limits);
        !why.empty())
      throw InputError(fmt::format("--zero-outputs: {}", why));
  const Schedule& schedule = request.training.schedule;
  if (schedule.after == Schedule::After::linear &&
      schedule.warmup > schedule.steps)
    throw InputError(
        fmt::format("--schedule linear: a warm-up of {} steps in a run of {}; "
                    "give a smaller --warmup",
                    schedule.warmup, schedule.steps));
  if (request.cost && !limits.lipschitz)
    throw InputError("--cost: what a limit costs; give --max-lipschitz");
}

}  // namespace

ordered_json to_json(const CostOfLimit& c) {
  return {{"max_lipschitz", c.limit},
          {"steps", c.limited.steps},
          {"best_valid_nll", c.limited.best_valid_nll},
          {"test_nll", c.limited.test_nll},
          {"unconstrained_best_valid_nll", c.unconstrained.best_valid_nll},
          {"unconstrained_test_nll", c.unconstrained.test_nll},
          {"cost_in_valid_nll", c.in_valid_nll()}};
}

Trained train(const TrainRequest& asked, const TrainWatch& watch) {
  TrainRequest request = asked;
  complete(request);
  require_allowed(request);
  const std::string text = read_text_file(request.text);
  // before the text is cut up: the smallest model that this can be
  request.model.characters = 2;
  require_training_memory(request.model, request.training, "train");
  const Corpus corpus = corpus_of(text, request.model.context, request.text);
  request.model.characters = corpus.vocabulary.size();

  Trained trained{
      .summary = run_in(request.folder, request, text, corpus, watch),
      .model = request.model};
  if (!trained.summary.finished || !request.cost) return trained;
  const double limit = *request.training.limits.lipschitz;
  request.training.limits.lipschitz = {};
  const RunSummary free =
      run_in(request.folder + "/unconstrained", request, text, corpus, watch);
  if (!free.finished) {
    trained.summary.finished = false;
    trained.summary.steps = free.steps;
    return trained;
  }
  trained.cost = CostOfLimit{limit, trained.summary, free};
  const std::string line = to_json(*trained.cost).dump(2) + "\n";
  AtomicFile file(request.folder + "/cost.json");
  file.write(std::as_bytes(std::span(line)));
  file.commit();
  return trained;
}

}  // namespace lipscope::audit
