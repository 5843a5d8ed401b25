#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lipscope/model/language_model_config.h"
#include "lipscope/train/embedding_layer.h"
#include "lipscope/train/lstm_layer.h"
#include "lipscope/train/transformer_block.h"

namespace lipscope {

/// The model: what it learns is not in it but in a buffer of its layout.
///
///   transformer  embedding of characters (and positions) → blocks → (pre: a
///   last
///                norm) → x W_head (+ b)
///   lstm         embedding of characters → LSTM layers → h W_head
///
/// Dropout stands after the embedding and on every residual branch (LSTM: on
/// what each layer hands on).
template <class Real>
class LanguageModel {
 public:
  explicit LanguageModel(const LanguageModelConfig& config);
  LanguageModel(const LanguageModel&) = delete;  // layers point at each other's
  LanguageModel& operator=(const LanguageModel&) = delete;

  const LanguageModelConfig& config() const { return config_; }
  const Layout& layout() const { return layout_; }

  /// Logits of what follows each of the characters [N×V]; the next forward
  /// overwrites them.
  const MatrixOf<Real>& forward(const VectorOf<Real>& weights,
                                std::span<const int> characters,
                                const Pass& pass);

  /// What the first layer reads of the characters [N×d], without dropout.
  MatrixOf<Real> embedded(const VectorOf<Real>& weights,
                          std::span<const int> characters,
                          const Pass& pass) const;

  /// The gradient of the mean cross-entropy of the last forward's logits;
  /// `pass` and `characters` are forward's. All of `gradients` is overwritten.
  void backward(const VectorOf<Real>& weights, VectorOf<Real>& gradients,
                std::span<const int> characters, std::span<const int> targets,
                const Pass& pass);

  /// What mixes in each layer, with its last input; empty for an LSTM.
  std::vector<const MixingLayer<Real>*> mixing() const;

 private:
  LanguageModelConfig config_;
  Layout layout_;
  EmbeddingLayer<Real> embedding_;
  std::vector<TransformerBlock<Real>> blocks_;
  std::vector<LstmLayer<Real>> lstms_;
  std::optional<NormLayer<Real>> last_norm_;
  LinearLayer<Real> head_;

  // what the first layer reads, then (LSTM) what each hands on
  std::vector<MatrixOf<Real>> x_;
  const MatrixOf<Real>* last_ = nullptr;  // what the head reads
  MatrixOf<Real> logits_, g_;
};

}  // namespace lipscope
