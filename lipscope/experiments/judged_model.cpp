#include "lipscope/experiments/judged_model.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "lipscope/core/errors.h"
#include "lipscope/theory/newhouse25.h"
#include "lipscope/theory/norms.h"
#include "lipscope/theory/stack_constant.h"
#include "lipscope/train/model_folder.h"
#include "lipscope/train/model_stack.h"
#include "lipscope/train/next_token.h"
#include "lipscope/train/sliding_windows.h"
#include "lipscope/train/state_file.h"

namespace lipscope {

double JudgedModel::rms_constant() const {
  return token_constant * std::sqrt(static_cast<double>(width) /
                                    static_cast<double>(characters));
}

bool is_newhouse25(const LanguageModelConfig& c) {
  return c.mixer == Mixer::dot && !c.heads_apart && c.norm == NormPlace::none &&
         c.join == Join::convex;
}

JudgedModel judged(LanguageModel<float>& model, const VectorOf<float>& weights,
                   const Corpus& corpus, int threads) {
  const LanguageModelConfig& c = model.config();
  if (c.mixer == Mixer::lstm) throw RunError("an LSTM has no proved constant");
  const std::vector<int> text = last_tenth(corpus);
  JudgedModel found{.last_tenth = score_of(model, weights, text, threads),
                    .width = c.width,
                    .characters = c.characters};
  const SlidingWindows windows;
  if (static_cast<Index>(text.size()) >= windows.characters())
    found.newhouse25_windows =
        score_of(next_token(model, weights), text, c.context, windows, threads);
  const auto longest = [&](const char* table) {
    return longest_row(
        tensor(weights, model.layout().slot(table)).cast<double>());
  };
  found.longest_token = longest("wte.weight");
  if (c.positions == Positions::table)
    found.longest_token += longest("wpe.weight");
  const Stack stack = stack_of(model, weights);
  const auto proved = [&](Norm norm) {
    const StackConstant constant =
        stack_constant(stack, {.norm = norm, .radius = found.longest_token});
    if (!constant.logits)
      throw RunError(fmt::format("no constant is proved of the model: {}",
                                 constant.unbounded));
    return constant.logits->value();
  };
  found.token_constant = proved(Norm::token);
  found.two_constant = proved(Norm::two);
  if (is_newhouse25(c))
    found.newhouse25_formula = newhouse25_formula(
        stack, found.longest_token / std::sqrt(static_cast<double>(c.width)));
  return found;
}

namespace {

Checkpoint last_checkpoint(const std::string& folder, const Layout& layout) {
  std::optional<Checkpoint> last = read_checkpoint(folder, layout);
  if (!last)
    throw InputError(fmt::format(
        "{}: has no checkpoint, of which the last weights are", folder));
  return std::move(*last);
}

}  // namespace

TrainedFolder open_trained(const std::string& folder, const Corpus& corpus) {
  const ModelDescription d = read_description(folder);
  if (d.vocabulary.characters() != corpus.vocabulary.characters())
    throw InputError(fmt::format(
        "{}: learnt a text with other characters; give that text", folder));
  const StateFile state = read_state(folder);
  return {.config = d.config, .sha256 = state.sha256, .steps = state.step};
}

JudgedModel judged(const std::string& folder, const Corpus& corpus,
                   int threads) {
  LanguageModel<float> model(read_description(folder).config);
  return judged(model, last_checkpoint(folder, model.layout()).state.weights,
                corpus, threads);
}

}  // namespace lipscope
