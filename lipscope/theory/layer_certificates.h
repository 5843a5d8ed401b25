#pragma once

#include <memory>
#include <optional>

#include "lipscope/model/layer.h"
#include "lipscope/theory/certificates.h"
#include "lipscope/theory/composition.h"

namespace lipscope {

/// Bounds from above, in the 2-norm, on the Jacobian of a map of one layer at
/// given inputs: core, attn, residual or block. What depends on the weights
/// alone is made once.
///
/// Attention: a local certificate (certificates.h), or if none is named the
/// best of bounds.h over the ball that holds the input. Around it, at what the
/// layer makes of x in f64,
///
///   residual  1 + L_attn max_i L_norm(x_i)   or   max_i L_norm(y_i)(1 +
///   L_attn)
///
/// with y = x + attn(x) and L_norm(x) = max|γ|/√(σ² + ε), 1 in a model without
/// norms; block: the same once more with the MLP. A norm between attention or
/// MLP and the residual sum is one more factor, at what it reads.
class LayerCertificates {
 public:
  LayerCertificates(const LayerWeights& layer, MapName map,
                    const ModelMapOptions& options);
  ~LayerCertificates();
  LayerCertificates(LayerCertificates&&) noexcept;

  /// Whether this certificate is to be had for the attention.
  bool offers(Certificate which) const;
  /// Where it would take more than its limit at n tokens: how much, in words.
  std::optional<std::string> too_large(Certificate which, Index n) const;
  /// As LocalCertificates has it; nothing, and bounds.h answers, where the
  /// attention weights, which it keeps, would take more than a gigabyte.
  std::optional<Certificate> usual(Index n) const;

  /// From the given certificate, or what there is without one. Nothing where
  /// nothing is proved.
  std::optional<Bound> at(const Matrix& x,
                          std::optional<Certificate> which) const;

  /// The same for residual and block, with its parts.
  std::optional<LayerBound> composed_at(const Matrix& x,
                                        std::optional<Certificate> which) const;

  /// Of the attention alone, in the norm two, inf or token: the best of
  /// bounds.h over the ball that holds x, or everywhere. Nothing where nothing
  /// is proved.
  std::optional<Bound> over_ball(const Matrix& x, Norm norm) const;

 private:
  struct Made;
  std::unique_ptr<Made> made_;
};

}  // namespace lipscope
