#include "lipscope/train/training_memory.h"

#include "lipscope/attention/kinds.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/memory.h"

namespace lipscope {
namespace {

double real(Index n) { return static_cast<double>(n); }

// the least that a layer takes beside its numbers: objects, names, places
constexpr double bytes_a_layer = 1000;

std::string shape_of(const LanguageModelConfig& c) {
  return fmt::format("{} layers of width {}, a context of {}", c.layers,
                     c.width, c.context);
}

}  // namespace

double learnt_numbers(const LanguageModelConfig& c) {
  const double d = real(c.width);
  const bool lstm = c.mixer == Mixer::lstm;
  const bool tied = compares(c.mixer) && kind_of(attention_kind(c.mixer)).tied;
  // the LSTM: four gates, each from the input and from the state
  const double layer =
      lstm ? 8 * d * d : (tied ? 3 : 4) * d * d + 2 * d * real(c.hidden);
  const double tables =
      d * (2 * real(c.characters) + (lstm ? 0 : real(c.context)));
  return tables + real(c.layers) * layer;
}

double model_bytes(const LanguageModelConfig& c, double bytes_a_number) {
  return bytes_a_number *
             (learnt_numbers(c) + real(c.context) * real(c.width)) +
         bytes_a_layer * real(c.layers);
}

double training_bytes(const LanguageModelConfig& c, const TrainingOptions& o) {
  const double rows = real(o.batch) * real(c.context), d = real(c.width);
  // what the way back needs of a layer: of attention its input and what it
  // mixed, of the MLP its two inner activations, of an LSTM its gates
  const double kept = c.mixer == Mixer::lstm
                          ? rows * 6 * d
                          : rows * (4 * d + 2 * real(c.hidden));
  return 16 * learnt_numbers(c) + 4 * kept * real(c.layers) +
         bytes_a_layer * real(c.layers);
}

void require_model_memory(const LanguageModelConfig& config,
                          double bytes_a_number, const std::string& where) {
  require_memory(model_bytes(config, bytes_a_number),
                 fmt::format("{}: a model of {}", where, shape_of(config)));
}

void require_training_memory(const LanguageModelConfig& config,
                             const TrainingOptions& options,
                             const std::string& where) {
  require_memory(training_bytes(config, options),
                 fmt::format("{}: to train {}, in batches of {},", where,
                             shape_of(config), options.batch));
}

}  // namespace lipscope
