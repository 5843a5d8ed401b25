#pragma once

#include <memory>

#include "lipscope/operators/linear_operator.h"

namespace lipscope {

/// A differentiable map between sequences: [n×d] → [n×e].
///
/// A head, a layer, a block and a whole transformer are all Maps, and so is any
/// composition of them; whatever measures one measures them all.
template <class Real>
class Map {
 public:
  virtual ~Map() = default;

  virtual MatrixOf<Real> operator()(const MatrixOf<Real>& x) const = 0;

  /// The Jacobian at x, acting on flattened sequences.
  /// It owns what depends on x and borrows the weights: it must not outlive
  /// the map.
  virtual std::unique_ptr<LinearOperator<Real>> linearize(
      const MatrixOf<Real>& x) const = 0;
};

}  // namespace lipscope
