#include "lipscope/train/trainer.h"

#include <cmath>

#include "lipscope/core/errors.h"
#include "lipscope/train/cross_entropy.h"
#include "lipscope/train/muon.h"
#include "lipscope/train/weight_limits.h"
#include "lipscope/train/zero_outputs.h"

namespace lipscope {
namespace {

// streams of the seed
constexpr std::uint64_t of_weights = 0, of_batches = 1, of_dropout = 2;

}  // namespace

Trainer::Trainer(const LanguageModelConfig& config, TrainingOptions options)
    : options_(std::move(options)), model_(config) {
  require(options_.batch >= 1, "trainer: a batch of {}", options_.batch);
  require(options_.dropout >= 0 && options_.dropout < 1,
          "trainer: dropout {} is not in [0, 1)", options_.dropout);
  require(options_.schedule.rate > 0 && options_.clip >= 0,
          "trainer: learning rate {}, clip {}", options_.schedule.rate,
          options_.clip);
  const Schedule& s = options_.schedule;
  require(s.after != Schedule::After::linear || s.steps >= s.warmup,
          "trainer: a linear schedule of {} steps with a warm-up of {}",
          s.steps, s.warmup);
  if (options_.optimizer == Optimizer::muon)
    require_valid(options_.muon, model_.layout());
  const std::string why = objection(options_.limits, config);
  require(why.empty(), "trainer: {}", why);
  if (options_.zero_outputs) {
    const std::string no = objection_to_zero_outputs(config, options_.limits);
    require(no.empty(), "trainer: {}", no);
  }
  options_.adamw.threads = options_.threads;
  options_.muon.threads = options_.threads;
}

TrainingState Trainer::initial() const {
  TrainingState state;
  Rng seed = Rng(options_.seed).split(of_weights);
  state.weights = model_.layout().initial<float>(seed.next());
  if (options_.zero_outputs) make_outputs_zero(model_.layout(), state.weights);
  begin_within(options_.limits, model_, state.weights, options_.threads);
  state.moments.first = VectorOf<float>::Zero(state.weights.size());
  state.moments.second = state.moments.first;
  return state;
}

StepReport Trainer::step(TrainingState& state, std::span<const int> text) {
  const Rng rng = Rng(options_.seed).split(of_batches).split(state.step);
  return step(state,
              random_batch(text, options_.batch, model_.config().context, rng));
}

StepReport Trainer::step(TrainingState& state, const Batch& batch) {
  const Pass pass{
      .sequences = batch.sequences,
      .length = batch.length,
      .threads = options_.threads,
      .dropout = options_.dropout,
      .noise = Rng(options_.seed).split(of_dropout).split(state.step),
      .products = options_.products};
  const MatrixOf<float>& logits =
      model_.forward(state.weights, batch.characters, pass);
  StepReport report;
  report.nll = cross_entropy(logits, batch.targets, options_.threads) /
               static_cast<double>(pass.rows());
  model_.backward(state.weights, gradients_, batch.characters, batch.targets,
                  pass);
  report.gradient_norm =
      gradient_norm(gradients_, 0, gradients_.size(), options_.threads);
  if (!std::isfinite(report.nll) || !std::isfinite(report.gradient_norm))
    throw RunError(fmt::format(
        "training diverged at step {}: the loss is {}, the gradient's norm {}",
        state.step + 1, report.nll, report.gradient_norm));

  const double scale = options_.clip > 0 && report.gradient_norm > options_.clip
                           ? options_.clip / report.gradient_norm
                           : 1.0;
  ++state.step;
  report.rate = options_.schedule.at(state.step);
  TensorChoice by_adamw;  // all
  if (options_.optimizer == Optimizer::muon) {
    const MuonOptions& muon = options_.muon;
    // the same course as Adam's rate
    const double rate = muon.rate * (report.rate / options_.schedule.rate);
    MuonStep step{.rate = rate, .scale = scale};
    if (options_.limits.rule != SingularValues::free)
      step.by_size = of_comparing_heads;
    muon_step(model_.layout(), state.weights, gradients_, state.moments.first,
              step, muon);
    by_adamw = [&](const Layout::Tensor& t) { return !moved_by_muon(t, muon); };
  }
  adamw_step(model_.layout(), state.weights, gradients_, state.moments,
             state.step, report.rate, scale, options_.adamw, by_adamw);
  keep_within(options_.limits, model_, state.weights, options_.threads);
  return report;
}

}  // namespace lipscope
