#include "lipscope/train/layout.h"

#include <cmath>
#include <stdexcept>

#include "lipscope/core/rng.h"

namespace lipscope {

Slot Layout::add(Tensor tensor) {
  tensor.slot.offset = size_;
  size_ += tensor.slot.size();
  tensors_.push_back(tensor);
  return tensor.slot;
}

Slot Layout::add_matrix(const std::string& name, Index in, Index out,
                        double scale) {
  const double deviation =
      scale * std::sqrt(2.0 / static_cast<double>(in + out));
  return add({.name = name,
              .slot = {.rows = in, .cols = out},
              .initial = {.deviation = deviation},
              .matrix = true});
}

Slot Layout::add_table(const std::string& name, Index rows, Index cols) {
  return add({.name = name,
              .slot = {.rows = rows, .cols = cols},
              .initial = {.deviation = 0.1}});
}

Slot Layout::add_row(const std::string& name, Index cols, double value) {
  return add({.name = name,
              .slot = {.rows = 1, .cols = cols},
              .initial = {.mean = value}});
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
    const auto& [name, slot, initial, matrix] = tensors_[i];
    Rng stream = rng.split(i);
    for (Real& number : buffer.segment(slot.offset, slot.size()))
      number = static_cast<Real>(
          initial.mean +
          (initial.deviation > 0 ? initial.deviation * stream.normal() : 0.0));
  }
  return buffer;
}

template VectorOf<float> Layout::initial(std::uint64_t) const;
template VectorOf<double> Layout::initial(std::uint64_t) const;

}  // namespace lipscope
