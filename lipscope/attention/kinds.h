#pragma once

#include <string_view>
#include <type_traits>

#include "lipscope/attention/multi_head.h"

/// What a kind of attention is: one value for each, defined in the file of its
/// name and listed in kinds.cpp. Everything else asks this value and never
/// which kind it is.
namespace lipscope {

struct DenseHead;

/// How the projections q = XW_Q + b_Q, k and v ("raw") become the features that
/// a head compares and mixes ("at"). Called once for a head.
template <class Real>
struct KindFeatures {
  using Features = HeadFeatures<Real>;

  /// Null, with all others, where the features are the projections.
  Features (*make)(const Features& raw,
                   const AttentionOptions& options) = nullptr;
  /// Tangents of the projections to those of the features.
  Features (*tangent)(const Features& raw, const Features& at,
                      const Features& d,
                      const AttentionOptions& options) = nullptr;
  /// The transpose of `tangent`.
  Features (*cotangent)(const Features& raw, const Features& at,
                        const Features& g,
                        const AttentionOptions& options) = nullptr;
  /// Adds to `back` the gradient by raw of ⟨gd, tangent(d)⟩.
  void (*add_bend)(const Features& raw, const Features& d, const Features& gd,
                   const AttentionOptions& options, Features& back) = nullptr;
  /// Whether the derivatives read raw; otherwise it is not kept and empty.
  bool reads_raw = false;
};

/// What is known of a shift of all tokens at once, see CommonMode.
enum class ShiftEffect {
  unknown,
  values,             ///< the weights stay as they are, the values move
  queries_and_values  ///< keys move whole rows of scores: no effect
};

struct AttentionKind {
  Kind kind;
  std::string_view name;         ///< as --kind takes it
  std::string_view note = {};    ///< what --help says of it
  bool tied = false;             ///< keys are the queries: there is no W_K
  bool lipschitz = false;        ///< the Jacobian is bounded over all inputs
  bool by_itself = false;        ///< but only where each token sees itself
  bool query_over_root = false;  ///< q is divided by √k
  bool scaled = false;  ///< by τ, ν and ε of AttentionOptions::cosine
  /// Features of v are v, so that v + b adds b to each weight's share.
  bool values_as_they_are = true;
  ShiftEffect shift = ShiftEffect::unknown;
  /// Why queries and keys cannot be rotated by position; empty: they can.
  std::string_view no_rope = {};
  /// b of the weights σ(s + b) for n tokens; null: the weights are a softmax.
  double (*sigmoid_shift)(Index n) = nullptr;
  /// The value weights [d×H·w] of all heads; null: W_V, by groups.
  Matrix (*value_weights)(const AttentionWeights& weights) = nullptr;
  KindFeatures<float> f32 = {};
  KindFeatures<double> f64 = {};
  /// Adds a head's closed form to the dense Jacobian (see dense.h), written
  /// from the paper and with nothing of the above.
  void (*dense)(const DenseHead& head, const AttentionOptions& options,
                const Matrix& x, Matrix& jacobian) = nullptr;

  /// Whether the Jacobian is bounded over all inputs under this mask: padding
  /// does not see itself.
  bool lipschitz_under(const Mask& mask) const {
    const bool padded = mask.padding_before > 0 || mask.padding_after > 0;
    return lipschitz && !(by_itself && padded);
  }
  /// Whether the weights of a row are shares of a whole: they sum to one.
  bool shares() const { return !sigmoid_shift; }
  /// Whether P(v + 1bᵀ) = P v + 1bᵀ: b can be added to what the head gives.
  bool adds_value_bias_last() const { return shares() && values_as_they_are; }

  template <class Real>
  const KindFeatures<Real>& features() const {
    if constexpr (std::is_same_v<Real, float>)
      return f32;
    else
      return f64;
  }
};

const AttentionKind& kind_of(Kind kind);

}  // namespace lipscope
