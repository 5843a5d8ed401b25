#include "lipscope/theory/gram_triangle.h"

#include <algorithm>
#include <cmath>

#include "lipscope/theory/norms.h"

namespace lipscope {

double sum_of_squares(const ConstView<float>& m) {
  constexpr Index lanes = 32;  // sums side by side
  Eigen::Array<double, lanes, 1> sums = Eigen::Array<double, lanes, 1>::Zero();
  double rest = 0.0;
  for (Index r = 0; r < m.rows(); ++r) {
    const float* row = m.data() + r * m.outerStride();
    Index c = 0;
    for (; c + lanes <= m.cols(); c += lanes)
      sums += Eigen::Map<const Eigen::Array<float, lanes, 1>>(row + c)
                  .cast<double>()
                  .square();
    for (; c < m.cols(); ++c)
      rest += static_cast<double>(row[c]) * static_cast<double>(row[c]);
  }
  return sums.sum() + rest;
}

Triangle::Triangle(const Matrix& l) : size_(l.rows()) {
  constexpr Index band = 96;
  bands_.reserve((size_ + band - 1) / band);
  for (Index c = 0; c < size_; c += band) {
    const Index cols = std::min(band, size_ - c);
    Band& b = bands_.emplace_back();
    b.first = c;
    b.numbers = l.block(c, c, size_ - c, cols).cast<float>();
    b.factor = RightFactor<float>(as_is(b.numbers));
  }
  norm_ = weight_norm_above(l);
  const double gamma = 1.1 * (static_cast<double>(size_) + 32) * 0x1p-24;
  const double frobenius = l.norm() * (1 + 1e-12);
  constexpr double casts = 0x1p-23;
  last_error_ = 1.001 * (gamma + casts) * frobenius;
  error_ =
      1.001 * ((gamma + casts) * frobenius * (2 * norm_ + gamma * frobenius) +
               casts * norm_ * norm_);
}

double Triangle::frobenius_after(const FloatMatrix& t) const {
  FloatMatrix y(size_, size_), z(size_, size_);
  // Y = TL
  for (const Band& b : bands_)
    gemm(as_is(view(t, {0, b.first, size_, size_ - b.first})), b.factor,
         view(y, {0, b.first, size_, b.numbers.cols()}));
  const FloatMatrix& y_read = y;
  return std::sqrt(squares_after(view(y_read), z));
}

double Triangle::squares_after(const ConstView<float>& y,
                               FloatMatrix& room) const {
  double squares = 0.0;
  // Z = LᵀY
  for (const Band& b : bands_) {
    room.resize(b.numbers.cols(), y.cols());
    gemm(transposed(b.numbers),
         as_is(view(y, {b.first, 0, size_ - b.first, y.cols()})), view(room));
    const FloatMatrix& z = room;
    squares += sum_of_squares(view(z));
  }
  return squares;
}

}  // namespace lipscope
