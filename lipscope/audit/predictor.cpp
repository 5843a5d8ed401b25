#include "lipscope/audit/predictor.h"

#include "lipscope/core/errors.h"
#include "lipscope/core/memory.h"
#include "lipscope/io/sha256.h"
#include "lipscope/io/text_file.h"
#include "lipscope/train/model_folder.h"
#include "lipscope/train/state_file.h"
#include "lipscope/train/training_memory.h"

namespace lipscope::audit {

std::string name_of(SavedWeights weights) {
  switch (weights) {
    case SavedWeights::best:
      return "best";
    case SavedWeights::last:
      return "last";
  }
  throw std::invalid_argument("name_of: no such weights");
}

Predictor::Predictor(const std::string& folder, int threads,
                     SavedWeights weights)
    : threads_(threads), tokenizer_(Vocabulary({})) {
  const std::optional<LanguageModelConfig> own =
      read_language_model_config(std::filesystem::path(folder) / "config.json");
  if (own) {
    open_learnt(*own, folder, weights);
    return;
  }
  if (weights == SavedWeights::last)
    throw InputError(fmt::format(
        "{}: no folder of lipscope train, which alone keeps the last weights",
        folder));
  open_pretrained(folder);
}

void Predictor::open_learnt(const LanguageModelConfig& config,
                            const std::string& folder, SavedWeights weights) {
  require_model_memory(config, sizeof(float), folder);
  tokenizer_ = load_tokenizer(folder);
  context_ = config.context;
  learnt_.emplace(config);
  const Layout& layout = learnt_->model.layout();
  std::filesystem::path file =
      std::filesystem::path(folder) / "model.safetensors";
  if (weights == SavedWeights::last) {
    const std::optional<Checkpoint> last = read_checkpoint(folder, layout);
    if (!last)
      throw InputError(fmt::format(
          "{}: has no checkpoint, of which the last weights are", folder));
    learnt_->weights = last->state.weights;
    file = std::filesystem::path(folder) /
           StateFile{.step = last->state.step}.checkpoint();
  } else {
    learnt_->weights = read_weights(file, layout);
  }
  sha256_ = sha256_file(file);
  next_ = next_token(learnt_->model, learnt_->weights);
}

void Predictor::open_pretrained(const std::string& folder) {
  model_ = load_model(folder);
  const ModelConfig& c = model_->config;
  require_next_token(*model_);
  require_complete(*model_);
  tokenizer_ = load_tokenizer(folder, c.vocabulary);
  require_memory(sizeof(float) * parameter_count(c),
                 fmt::format("{}: a model of {} layers of width {}", folder,
                             c.layers, c.width));
  context_ = c.positions;
  sha256_ = model_->parameters.sha256().value();
  pass_.emplace(*model_, PassOptions{.threads = threads_});
  next_ = [this](std::span<const int> tokens,
                 const Pass& pass) -> const MatrixOf<float>& {
    require(pass.sequences == 1, "predictor: {} sequences, it takes one",
            pass.sequences);
    const std::vector<Index> ids(tokens.begin(), tokens.end());
    logits_ = logits(*model_, (*pass_)(ids).last, threads_);
    return logits_;
  };
}

TextScore Predictor::score(std::span<const int> text) const {
  // of a large vocabulary the logits of one window are enough
  return score_of(next_, text, context_, threads_,
                  learnt_ ? windows_together : 1);
}

}  // namespace lipscope::audit
