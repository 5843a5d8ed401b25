#pragma once

#include <optional>
#include <vector>

#include "lipscope/attention/cosine.h"
#include "lipscope/attention/relative_bias.h"
#include "lipscope/attention/weights.h"
#include "lipscope/theory/bound.h"
#include "lipscope/theory/head_norms.h"

namespace lipscope {

struct LayerHeads;

/// What is bounded: which attention, on how many tokens, and where these are.
struct BoundSetting {
  Kind kind = Kind::dot;
  Mask mask = Mask::none;
  std::vector<Index> heads = {};  ///< the chosen heads, each once; empty: all
  bool project = true;  ///< through the output projection, if there is one
  Index n = 1;          ///< tokens
  double radius = 0.0;  ///< |x| ≤ R; read where KindBounds::over_ball
  /// The norm layer in front, if tokens come out of one. It tightens what is
  /// offered, and the scope says so; its radius is norm_layer_radius.
  std::optional<NormWeights> norm = {};
  bool rope = false;  ///< q and k are rotated by position
  CosineScales cosine = {};
  /// What is added to scores by distance, by all heads of the layer. Read where
  /// KindBounds::relative.
  std::optional<RelativeBias> relative_bias = {};
};

/// What is proved of a kind of attention: one value for each, in bounds.cpp. A
/// kind of which nothing is proved has its value too.
struct KindBounds {
  Kind kind;
  /// Over a ball of given radius; otherwise over all inputs.
  bool over_ball = false;
  bool rope = false;      ///< also where q and k are rotated by position
  bool relative = false;  ///< also with a relative bias (relative_positions.h)
  bool token = false;     ///< also in the token norm
  bool inf = false;       ///< also in the inf-norm
  /// Adds the bounds for the setting; null: nothing is proved.
  void (*add)(const LayerHeads& layer, const BoundSetting& setting,
              std::vector<Bound>& out) = nullptr;
};

const KindBounds& kind_bounds(Kind kind);

/// Why nothing is proved of this kind under this mask, over any set; empty
/// where something is.
std::string why_no_bounds(Kind kind, const Mask& mask);

/// Every bound that is proved for the setting, in no order. What does not
/// apply is not there: the forms of Castin24 with a query bias or RoPE,
/// unmasked forms under a mask, those over measures under a window or padding,
/// anything for untied L2 attention and for tied L2 attention with padding
/// (unbounded.h), dot-product or sigmoid attention over an unbounded set. A
/// window that is as long as the sequence or longer is none. With a relative
/// bias what relative_positions.h says; of tied L2 attention nothing but under
/// the causal mask.
///
/// Several heads: the sum over heads with V_h = W_V,h W_O,h, or
/// ‖W_O‖(Σ_h Lip_h²)^{1/2} with V_h = W_V,h, whichever is smaller; without the
/// projection (Σ_h Lip_h²)^{1/2}. Both hold in all three norms: heads add up in
/// the one and stand side by side in each token in the other.
std::vector<Bound> bounds(const AttentionWeights& weights,
                          const BoundSetting& setting);

/// The smallest of those that speak of the norm, if there is one.
std::optional<Bound> best_bound(const std::vector<Bound>& bounds, Norm norm);

}  // namespace lipscope
