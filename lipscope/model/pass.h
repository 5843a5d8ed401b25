#pragma once

#include <vector>

#include "lipscope/model/layer.h"

/// The model as it was trained, run on tokens: its own masks and attention, all
/// heads, no dropout. Sequences of equal length are laid under one another.
namespace lipscope {

/// The input of layer 0 [sequences·n × d] of the token ids, sequence after
/// sequence:
///
///   GPT-2, lipscope  token + position
///   BERT             norm(token + position + token type 0)
///   ELECTRA, ALBERT  the same, projected to d
///   Llama            token
///   Gemma            √d token
///
/// InputError for an id outside the vocabulary, and for sequences longer than
/// the table of positions.
template <class Real>
MatrixOf<Real> embed(const Model& model, const std::vector<Index>& ids,
                     Index sequences = 1);

/// What the layers see.
template <class Real>
struct HiddenStates {
  /// Of each layer: its input, and the input of its attention module, which is
  /// the norm of it in a pre-norm model and the same in others.
  std::vector<MatrixOf<Real>> layer, attention;
  MatrixOf<Real> last;  ///< after the last layer and the final norm
};

struct PassOptions {
  MaskChoice mask = {};  ///< the layers' own, if nothing is said
  Index sequences = 1;
  int threads = 0;  ///< 0: all cores
  /// Keep all layers in memory, for many passes; otherwise each is read and
  /// dropped as it is passed.
  bool keep_layers = true;
  /// No tokens are read: what stands ahead of layer 0 may be missing.
  bool from_layer_0 = false;
};

/// Runs a model from token ids. It borrows the model, which must
/// outlive it. InputError if the folder
/// has not everything.
template <class Real>
class ForwardPass {
 public:
  ForwardPass(const Model& model, PassOptions options);

  /// The states for these ids; without those of layers from `layers` on, and
  /// without `last`, if layers ≥ 0.
  HiddenStates<Real> operator()(const std::vector<Index>& ids,
                                Index layers = -1) const;

  /// The same for an input of layer 0.
  HiddenStates<Real> from(MatrixOf<Real> x, Index layers = -1) const;

 private:
  struct Stage {
    MapPtr<Real> norm;  // ahead of attention, or nothing
    MapPtr<Real> block;
  };

  Stage stage(Index layer) const;

  const Model& model_;
  PassOptions options_;
  std::vector<Stage> kept_;
  MapPtr<Real> final_norm_;
};

/// The language-model head [d×vocabulary], in f64. InputError where the model
/// has none that is supported, or one with a bias.
Matrix load_head(const Model& model);

/// The language-model head on last hidden states [m×d] → [m×vocabulary].
/// InputError where the model has none that is supported.
template <class Real>
MatrixOf<Real> logits(const Model& model, const MatrixOf<Real>& last,
                      int threads = 0);

}  // namespace lipscope
