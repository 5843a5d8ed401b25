#pragma once

#include "lipscope/attention/layer_norm.h"
#include "lipscope/attention/multi_head.h"
#include "tests/campaign/dice.h"

/// Weights and tokens that try to break a bound.
namespace lipscope::campaign {

/// What a layer is drawn within.
struct LayerLimits {
  Kind kind = Kind::dot;
  Index d = 0;        ///< features; 0: drawn, up to 6
  Index heads = 3;    ///< at most
  bool even = false;  ///< queries of even width, for rotary positions
  bool bias = true;   ///< may have biases
  /// Also of the values. It only shifts the output of softmax attention, and
  /// Jacobians that are made from v leave its rounding beside what is measured:
  /// u|b| times the logits, which is not small beside values that are.
  bool value_bias = true;
  bool square = false;  ///< output of d features, always there
  Index width = 4;      ///< of queries and of values, at most
};

/// Gaussian weights of a scale from 1e-3 to 1e3, or with a structure: zero
/// queries, keys or values; rank one; keys that are the queries or their
/// opposite; equal heads; the identity; entries −1, 0 and 1.
AttentionWeights draw_weights(const LayerLimits& limits, Dice& dice);

/// n tokens: Gaussian, repeated, ties along a line, one huge, one zero, huge or
/// tiny as a whole; of a size from 1e-3 to 1e3, or where logits are of a size
/// that matters; in every case so that logits stay below about 10⁶.
Matrix draw_tokens(const AttentionWeights& weights, Kind kind, Index n,
                   Dice& dice);

/// Scales queries down until tokens of this length have logits of at most about
/// 10⁶.
void keep_logits_small(AttentionWeights& weights, Kind kind, double radius);

/// Scales queries (and keys, where distances are compared) so that logits of
/// tokens of this length are of this size at most: where it is large, attention
/// is saturated.
void make_logits(AttentionWeights& weights, Kind kind, double radius,
                 double logit);

/// Where queries and keys at a distance are not tied: scales both down until
/// the squares |q|² and |k|² that cancel in it are at most about 10⁶. Where
/// squares of 10¹¹ cancel, it is the dense Jacobian that is wrong, by 10⁻⁶ of
/// it and more.
void keep_distances_known(AttentionWeights& weights, Kind kind, double radius);

NormWeights draw_norm(Index d, Dice& dice);

CosineScales draw_scales(Dice& dice);

/// Of each head, or one over all heads.
QueryKeyNorm draw_query_key_norm(const AttentionWeights& weights, Dice& dice);

/// A mask of n tokens with a window, padding or both, under which each token
/// sees one.
Mask draw_mask(Index n, Dice& dice);

/// max|x_i| from above, 1e-6 at least.
double radius_of(const Matrix& x);

/// The nearest x with |x_i| ≤ radius.
Matrix within(Matrix x, double radius);

}  // namespace lipscope::campaign
