#pragma once

#include <vector>

#include "lipscope/model/layer.h"

/// The model as it was trained, run on tokens: its own masks and attention, all
/// heads, no dropout. Sequences of equal length are laid under one another.
namespace lipscope {

/// The input of layer 0 [sequences·n × d] of the token ids, sequence after
/// sequence:
///
///   GPT-2, lipscope  token + position (lipscope: if it has a table of them)
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
  /// Only the inputs of the first so many layers are asked for: what they do
  /// not need is not read. −1: all layers, and `last`.
  Index layers = -1;
  /// No tokens are read: what stands ahead of layer 0 may be missing.
  bool from_layer_0 = false;
};

/// Runs a model from token ids, many times: its layers are read once and kept
/// in memory. It borrows the model, which must outlive it. InputError if the
/// folder has not everything.
template <class Real>
class ForwardPass {
 public:
  ForwardPass(const Model& model, PassOptions options);

  /// The states for these ids; without those of layers from `layers` on, and
  /// without `last`, if layers ≥ 0. No more than the options ask for.
  HiddenStates<Real> operator()(const std::vector<Index>& ids,
                                Index layers = -1) const;

  /// The same for an input of layer 0.
  HiddenStates<Real> from(MatrixOf<Real> x, Index layers = -1) const;

 private:
  struct Stage {
    MapPtr<Real> norm;   // ahead of attention, or nothing
    MapPtr<Real> block;  // nothing where no later layer is asked for
  };

  const Model& model_;
  PassOptions options_;
  std::vector<Stage> kept_;
  MapPtr<Real> final_norm_;
};

/// Inputs of layer 0, of sequences of one length under one another.
template <class Real>
struct StackedSequences {
  MatrixOf<Real> x;
  Index sequences = 1;
};

/// Runs a model that is too large to be kept: all batches go through a layer
/// together, which is read for them and dropped after them. The states have the
/// same bits as those of ForwardPass. Memory does not grow with the number of
/// layers. It borrows the model, which must outlive it.
template <class Real>
class LayerWalk {
 public:
  /// Stands ahead of layer 0. Of the options mask and threads count.
  LayerWalk(const Model& model, std::vector<StackedSequences<Real>> batches,
            PassOptions options);

  /// The layer ahead of which it stands; after the last one their number.
  Index layer() const { return layer_; }

  /// The input of that layer for a batch; and of its attention module, for
  /// which only the norm is read.
  const MatrixOf<Real>& layer_input(std::size_t batch) const;
  MatrixOf<Real> attention_input(std::size_t batch) const;

  /// Through that layer, to the next. InputError if the folder has not all of
  /// it.
  void advance();

 private:
  const Model& model_;
  PassOptions options_;
  Index layer_ = 0;
  std::vector<StackedSequences<Real>> batches_;  // as they are ahead of layer_
};

/// The language-model head [d×vocabulary] and its bias, empty if it has none,
/// in f64. InputError where the model has no head that is supported.
struct LogitHead {
  Matrix weight;
  Vector bias;
};
LogitHead load_head(const Model& model);

/// The language-model head on last hidden states [m×d] → [m×vocabulary].
/// InputError where the model has none that is supported.
template <class Real>
MatrixOf<Real> logits(const Model& model, const MatrixOf<Real>& last,
                      int threads = 0);

}  // namespace lipscope
