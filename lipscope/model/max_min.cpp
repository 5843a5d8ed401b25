#include "lipscope/model/max_min.h"

#include "lipscope/core/errors.h"

namespace lipscope {
namespace {

template <class Features, class Swapped>
void require_pairs(const Features& x, const Swapped& swapped) {
  require(x.rows() == swapped.rows() && x.cols() == 2 * swapped.cols(),
          "max-min: [{}x{}] for [{}x{}] pairs", x.rows(), x.cols(),
          swapped.rows(), swapped.cols());
}

}  // namespace

template <class Real>
MatrixOf<Real> swapped_pairs(const MatrixOf<Real>& x) {
  require(x.cols() % 2 == 0, "max-min: {} features do not make pairs",
          x.cols());
  const Index half = x.cols() / 2;
  return (x.leftCols(half).array() < x.rightCols(half).array())
      .template cast<Real>();
}

template <class Real>
void sort_pairs(View<Real> x, View<Real> swapped) {
  require_pairs(x, swapped);
  const Index half = swapped.cols();
  for (Index i = 0; i < x.rows(); ++i) {
    Real* first = x.data() + i * x.outerStride();
    Real* second = first + half;
    Real* swap = swapped.data() + i * swapped.outerStride();
    for (Index j = 0; j < half; ++j) {
      const Real a = first[j], b = second[j];
      swap[j] = a < b ? 1 : 0;
      first[j] = a < b ? b : a;
      second[j] = a < b ? a : b;
    }
  }
}

template <class Real>
void swap_pairs(View<Real> x, const ConstView<Real>& swapped) {
  require_pairs(x, swapped);
  const Index half = swapped.cols();
  for (Index i = 0; i < x.rows(); ++i) {
    Real* first = x.data() + i * x.outerStride();
    Real* second = first + half;
    const Real* swap = swapped.data() + i * swapped.outerStride();
    for (Index j = 0; j < half; ++j) {
      const Real a = first[j], b = second[j];
      first[j] = swap[j] > 0 ? b : a;
      second[j] = swap[j] > 0 ? a : b;
    }
  }
}

template MatrixOf<float> swapped_pairs(const MatrixOf<float>&);
template MatrixOf<double> swapped_pairs(const MatrixOf<double>&);
template void sort_pairs(View<float>, View<float>);
template void sort_pairs(View<double>, View<double>);
template void swap_pairs(View<float>, const ConstView<float>&);
template void swap_pairs(View<double>, const ConstView<double>&);

}  // namespace lipscope
