#include "lipscope/train/layout.h"

#include <cmath>
#include <stdexcept>
#include <utility>

#include "lipscope/core/errors.h"
#include "lipscope/core/rng.h"

namespace lipscope {

Slot Layout::add(Tensor tensor) {
  tensor.slot.offset = size_;
  size_ += tensor.slot.size();
  tensors_.push_back(tensor);
  return tensor.slot;
}

Slot Layout::add_matrix(const std::string& name, Index in, Index out) {
  return add_matrix(
      name, in, out,
      {.deviation = std::sqrt(2.0 / static_cast<double>(in + out))});
}

Slot Layout::add_matrix(const std::string& name, Index in, Index out,
                        Initial initial, Index blocks) {
  require(blocks >= 1 && out % blocks == 0,
          "layout: {} has {} columns, which are not {} blocks of equal width",
          name, out, blocks);
  return add({.name = name,
              .slot = {.rows = in, .cols = out},
              .initial = std::move(initial),
              .matrix = true,
              .blocks = blocks});
}

Slot Layout::add_table(const std::string& name, Index rows, Index cols,
                       Initial initial) {
  return add({.name = name,
              .slot = {.rows = rows, .cols = cols},
              .initial = std::move(initial)});
}

Slot Layout::add_row(const std::string& name, Index cols, double value) {
  return add_row(name, cols, Initial{.mean = value});
}

Slot Layout::add_row(const std::string& name, Index cols, Initial initial) {
  return add({.name = name,
              .slot = {.rows = 1, .cols = cols},
              .initial = std::move(initial)});
}

Slot Layout::slot(const std::string& name) const {
  for (const Tensor& t : tensors_)
    if (t.name == name) return t.slot;
  throw std::invalid_argument("layout: there is no " + name);
}

template <class Real>
VectorOf<Real> Layout::initial(std::uint64_t seed) const {
  VectorOf<Real> buffer(size_);
  const Rng rng(seed);
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const auto& [name, slot, initial, matrix, blocks] = tensors_[i];
    Rng stream = rng.split(i);
    if (initial.form == Initial::Form::orthogonal) {
      for (Index b = 0; b < blocks; ++b) {
        View<Real> w = block(buffer, tensors_[i], b);
        w = (initial.gain * orthonormal(w.rows(), w.cols(), stream.split(b)))
                .template cast<Real>();
      }
      continue;
    }
    for (Index j = 0; j < slot.size(); ++j) {
      double number = initial.mean;
      if (initial.entry)
        number = initial.entry(j / slot.cols, j % slot.cols, stream.normal());
      else if (initial.deviation > 0)
        number += initial.deviation * stream.normal();
      buffer[slot.offset + j] = static_cast<Real>(number);
    }
  }
  return buffer;
}

template VectorOf<float> Layout::initial(std::uint64_t) const;
template VectorOf<double> Layout::initial(std::uint64_t) const;

}  // namespace lipscope
