#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lipscope/attention/layer_norm.h"
#include "lipscope/attention/multi_head.h"
#include "lipscope/attention/position_heads.h"
#include "lipscope/model/mask_choice.h"
#include "lipscope/model/mlp.h"
#include "lipscope/model/model.h"
#include "lipscope/operators/compose.h"

namespace lipscope {

/// What can be measured of a model, from which point to which:
///
///   core      input of the attention module → heads, end to end, ahead of W_O
///             and without the shares of heads apart
///   attn      the same → after W_O
///   residual  input of the layer → x + attn(norm x), norm(x + attn x) in a
///             post-norm model, x + attn x in one without norms (carry x + c
///             attn x, LayerWeights); where MLP and attention stand beside each
///             other, without the MLP
///   block     input → output of the layer, MLP included
///   model     input of layer 0 → last hidden state after the final norm
enum class MapName { core, attn, residual, block, model };

std::string name_of(MapName map);  ///< "core", "attn", …

/// The parameters of one layer, in f64, and how they are put together. What a
/// contractive layer is divided by, and the contraction of an invertible model,
/// are in W_O and W_down.
struct LayerWeights {
  AttentionWeights attention;  ///< heads = 0: there are position heads alone
  /// Added to what attention gives; the two write different coordinates.
  std::optional<PositionHeads> position_heads = {};
  NormWeights attention_norm;  ///< ahead of attention, or after its residual
  /// Of what attention gives, ahead of the residual sum; empty: none.
  NormWeights attention_output_norm = {};
  MlpWeights mlp;
  NormWeights mlp_norm;
  NormWeights mlp_output_norm = {};
  NormPlace norm = NormPlace::pre;
  /// x + attn(x), with the norm of a pre-norm layer ahead of its MLP alone.
  bool attention_unnormed = false;
  /// x + attn(norm x) + mlp(norm x): the MLP does not read the attention.
  bool parallel = false;
  double residual_scale = 1.0;  ///< c of x + c f(norm x)
  double carry = 1.0;           ///< of x in that sum; 0: f alone
  Mask mask = Mask::none;       ///< its own
  Kind kind = Kind::dot;        ///< the model's own
  std::optional<Rotary> rope = {};
  std::optional<QueryKeyNorm> query_key_norm = {};
  std::optional<RelativeBias> relative_bias = {};

  bool pre_norm() const { return norm == NormPlace::pre; }
  /// Where the norm of the attention stands.
  NormPlace attention_norm_place() const {
    return attention_unnormed ? NormPlace::none : norm;
  }
  /// As in AttentionOptions.
  bool plain_scores() const {
    return !rope && !query_key_norm && !relative_bias;
  }
  /// Whether it is x + f(norm x), norm(x + f(x)) or x + f(x), with attention
  /// and then the MLP for f, and nothing else.
  bool plain_form() const {
    return !parallel && !attention_unnormed && residual_scale == 1.0 &&
           carry == 1.0 && !position_heads &&
           attention_output_norm.gain.size() == 0 &&
           mlp_output_norm.gain.size() == 0;
  }
};

/// Reads layer `layer`, as far as a map of it needs: the attention alone for
/// core and attn, the norm as well for residual, everything for block (and
/// model). InputError with what is missing; the rest of the folder does not
/// matter.
LayerWeights load_layer(const Model& model, Index layer,
                        MapName map = MapName::block);

/// The attention of a layer as a kind reads it: tied kinds have their queries
/// for keys, and look neither at the keys nor at their bias.
AttentionWeights attention_of(const LayerWeights& layer, Kind kind);

struct ModelMapOptions {
  /// The model's own, if nothing is said; l2 drops the keys and ties them to
  /// the queries.
  std::optional<Kind> kind = {};
  MaskChoice mask = {};           ///< the layer's own, if nothing is said
  std::vector<Index> heads = {};  ///< for core and attn; empty: all
  Index sequences = 1;            ///< of equal length, laid under one another
  CosineScales cosine = {};
  int threads = 0;           ///< 0: all cores
  std::uint64_t memory = 0;  ///< for attention weights, see AttentionOptions
};

/// How the attention of a layer runs, after the output projection or before it.
AttentionOptions attention_options(const LayerWeights& layer, bool project,
                                   const ModelMapOptions& options);

/// The attention of the chosen heads of a layer, ready to run. Heads of a layer
/// whose q/k-norm is one of all heads do not run alone: all of them run, and
/// W_O drops the others; InputError for such heads ahead of W_O, and for
/// layers with position heads.
struct ChosenAttention {
  AttentionWeights weights;
  AttentionOptions options;
};
ChosenAttention chosen_attention(const LayerWeights& layer, bool project,
                                 const ModelMapOptions& options);

/// A map of one layer; MapName::model is not one. InputError for a choice of
/// heads or masks in a layer with position heads.
template <class Real>
MapPtr<Real> layer_map(const LayerWeights& layer, MapName map,
                       const ModelMapOptions& options);

/// The whole model from the input of layer 0 on, all layers in memory in Real.
/// The bytes for attention weights are shared among the layers.
template <class Real>
MapPtr<Real> model_map(const Model& model, const ModelMapOptions& options);

/// The norm after the last layer; nothing in a model that is not pre-norm.
std::optional<NormWeights> load_final_norm(const Model& model);

/// The norm whose output the attention of a layer reads: in a post-norm model
/// the last of the layer before, or of the embeddings. Nothing where there is
/// none.
std::optional<NormWeights> load_input_norm(const Model& model, Index layer);

/// The parameters of one norm of the model.
NormWeights load_norm(const Model& model, const Module& module);

}  // namespace lipscope
