#pragma once

#include <optional>
#include <span>

#include "lipscope/train/layout.h"
#include "lipscope/train/pass.h"

namespace lipscope {

/// x_t = E[character] + P[t]; without positions, the first alone.
template <class Real>
class EmbeddingLayer {
 public:
  /// positions = 0: none.
  /// Characters begin by `start`, or by the usual one.
  EmbeddingLayer(Layout& layout, Index characters, Index positions, Index width,
                 const std::optional<Initial>& start = {});

  MatrixOf<Real> forward(const VectorOf<Real>& weights,
                         std::span<const int> characters,
                         const Pass& pass) const;
  void backward(VectorOf<Real>& gradients, std::span<const int> characters,
                const MatrixOf<Real>& gx, const Pass& pass) const;

 private:
  Slot characters_, positions_;
};

}  // namespace lipscope
