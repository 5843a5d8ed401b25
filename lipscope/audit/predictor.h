#pragma once

#include <memory>
#include <optional>
#include <string>

#include "lipscope/model/pass.h"
#include "lipscope/text/tokenizer.h"
#include "lipscope/train/next_token.h"

namespace lipscope::audit {

/// Which weights of a folder that `lipscope train` made.
enum class SavedWeights {
  best,  ///< of the least validation loss: model.safetensors
  last   ///< of the last checkpoint, which is the last step of a finished run
};

std::string name_of(SavedWeights weights);  ///< "best", "last"

/// The language model of a folder, as `eval` and `sample` read it: its
/// tokenizer, and what it says of the next token, in f32.
///
/// A transformer is a Model (model/model.h), whoever made the folder; one that
/// `lipscope train` made runs by the code that trained it, to the same bits,
/// and so does an LSTM, which is none.
class Predictor {
 public:
  /// InputError for a folder that is not to be read, for BERT, which does not
  /// predict the next token, for a lack of memory, and for the last weights
  /// where there is no checkpoint.
  explicit Predictor(const std::string& folder, int threads = 0,
                     SavedWeights weights = SavedWeights::best);
  Predictor(const Predictor&) = delete;  // what it calls points into it
  Predictor& operator=(const Predictor&) = delete;

  const Tokenizer& tokenizer() const { return tokenizer_; }
  Index context() const { return context_; }
  const std::string& sha256() const { return sha256_; }  ///< of the weights
  bool reads_characters() const { return learnt_.has_value(); }

  const NextToken& next() const { return next_; }
  TextScore score(std::span<const int> text) const;

 private:
  // what lipscope trained, with its weights
  struct Learnt {
    LanguageModel<float> model;
    VectorOf<float> weights;
    explicit Learnt(const LanguageModelConfig& config) : model(config) {}
  };

  void open_learnt(const LanguageModelConfig& config, const std::string& folder,
                   SavedWeights weights);
  void open_pretrained(const std::string& folder);

  int threads_;
  Tokenizer tokenizer_;
  Index context_ = 0;
  std::string sha256_;
  std::optional<Learnt> learnt_;  // or
  std::optional<Model> model_;
  std::optional<ForwardPass<float>> pass_;  // of the model
  MatrixOf<float> logits_;
  NextToken next_;
};

}  // namespace lipscope::audit
