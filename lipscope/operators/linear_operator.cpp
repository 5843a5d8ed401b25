#include "lipscope/operators/linear_operator.h"

namespace lipscope {

template <class Real>
MatrixOf<Real> materialize(const LinearOperator<Real>& a) {
  MatrixOf<Real> dense(a.rows(), a.cols());
  VectorOf<Real> unit = VectorOf<Real>::Zero(a.cols());
  for (Index j = 0; j < a.cols(); ++j) {
    unit[j] = 1;
    dense.col(j) = a.apply(unit);
    unit[j] = 0;
  }
  return dense;
}

template MatrixOf<float> materialize(const LinearOperator<float>&);
template MatrixOf<double> materialize(const LinearOperator<double>&);

}  // namespace lipscope
