#pragma once

#include <optional>
#include <string>

#include "lipscope/train/corpus.h"
#include "lipscope/train/language_model.h"
#include "lipscope/train/text_score.h"

namespace lipscope {

/// What is known of a model's last weights: how well they predict the last
/// tenth of the text that they learnt the rest of, and their constant.
struct JudgedModel {
  TextScore last_tenth;
  /// In Newhouse25's windows; nothing where the last tenth is shorter.
  std::optional<TextScore> newhouse25_windows = {};
  /// Input of layer 0 → logits, proved (theory/stack_constant.h), in the token
  /// norm and in the 2-norm, over tokens no longer than the longest embedded
  /// character.
  double token_constant = 0.0, two_constant = 0.0;
  double longest_token = 0.0;
  Index width = 0, characters = 0;
  /// What Newhouse25's formula says (theory/newhouse25.h), between root mean
  /// squares; nothing where the model is not one of theirs.
  std::optional<double> newhouse25_formula = {};

  /// The proved constant between root mean squares.
  double rms_constant() const;
};

/// RunError for a model without a proved constant.
JudgedModel judged(LanguageModel<float>& model, const VectorOf<float>& weights,
                   const Corpus& corpus, int threads);

/// Whether it has the form that Newhouse25's formula speaks of: dot-product
/// heads that share an output matrix, convex residuals, no norms.
bool is_newhouse25(const LanguageModelConfig& config);

/// The last checkpoint of a folder that `lipscope train` made.
struct TrainedFolder {
  LanguageModelConfig config;
  std::string sha256;  ///< of the checkpoint
  Index steps = 0;
};

/// What the folder says of itself. InputError for other folders, for one
/// without a checkpoint, and for a vocabulary other than the corpus has.
TrainedFolder open_trained(const std::string& folder, const Corpus& corpus);

/// The same model, judged.
JudgedModel judged(const std::string& folder, const Corpus& corpus,
                   int threads);

}  // namespace lipscope
