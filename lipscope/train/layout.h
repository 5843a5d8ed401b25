#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lipscope/core/matrix.h"
#include "lipscope/train/initial.h"

namespace lipscope {

/// Where a tensor stands in a flat buffer: rows·cols numbers from `offset` on.
struct Slot {
  Index offset = 0, rows = 0, cols = 0;

  Index size() const { return rows * cols; }
};

/// What a model learns, by name, as one flat buffer. Weights, gradients and the
/// two moments of Adam are four buffers of the same layout, so that what treats
/// all numbers alike never asks what they are.
class Layout {
 public:
  struct Tensor {
    std::string name;
    Slot slot;
    Initial initial;
    bool matrix = false;  ///< a product's factor, which weight decay acts on
    /// How many matrices of equal width stand side by side in its columns, as
    /// the W_V of heads do. What treats a matrix as a whole (orthogonal starts,
    /// Muon, rules for singular values) treats each of them by itself.
    Index blocks = 1;
  };

  /// A matrix that x is multiplied with; it begins with Glorot's deviation
  /// √(2/(in + out)) [Glorot10].
  Slot add_matrix(const std::string& name, Index in, Index out);
  Slot add_matrix(const std::string& name, Index in, Index out, Initial initial,
                  Index blocks = 1);
  /// A table of rows to look up.
  Slot add_table(const std::string& name, Index rows, Index cols,
                 Initial initial);
  /// A row of gains or biases, all of them `value` at first.
  Slot add_row(const std::string& name, Index cols, double value);
  Slot add_row(const std::string& name, Index cols, Initial initial);

  const std::vector<Tensor>& tensors() const { return tensors_; }
  Index size() const { return size_; }
  /// Where the tensor of that name stands; std::invalid_argument if none does.
  Slot slot(const std::string& name) const;

  /// The buffer as it begins; each tensor depends on the seed and its number
  /// alone.
  template <class Real>
  VectorOf<Real> initial(std::uint64_t seed) const;

 private:
  Slot add(Tensor tensor);

  std::vector<Tensor> tensors_;
  Index size_ = 0;
};

/// A tensor of a buffer, to read or to write.
template <class Real>
ConstView<Real> tensor(const VectorOf<Real>& buffer, Slot s) {
  return {buffer.data() + s.offset, s.rows, s.cols,
          Eigen::OuterStride<>(s.cols)};
}
template <class Real>
View<Real> tensor(VectorOf<Real>& buffer, Slot s) {
  return {buffer.data() + s.offset, s.rows, s.cols,
          Eigen::OuterStride<>(s.cols)};
}

/// Matrix `number` of those that stand side by side in a tensor of a buffer.
template <class Real>
ConstView<Real> block(const VectorOf<Real>& buffer, const Layout::Tensor& t,
                      Index number) {
  const Index cols = t.slot.cols / t.blocks;
  return {buffer.data() + t.slot.offset + number * cols, t.slot.rows, cols,
          Eigen::OuterStride<>(t.slot.cols)};
}
template <class Real>
View<Real> block(VectorOf<Real>& buffer, const Layout::Tensor& t,
                 Index number) {
  const Index cols = t.slot.cols / t.blocks;
  return {buffer.data() + t.slot.offset + number * cols, t.slot.rows, cols,
          Eigen::OuterStride<>(t.slot.cols)};
}

/// Which tensors are meant.
using TensorChoice = std::function<bool(const Layout::Tensor&)>;

/// What v may write, to read only.
template <class Real>
ConstView<Real> read_only(const View<Real>& v) {
  return {v.data(), v.rows(), v.cols(), Eigen::OuterStride<>(v.outerStride())};
}

}  // namespace lipscope
