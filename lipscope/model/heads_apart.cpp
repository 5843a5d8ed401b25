#include "lipscope/model/heads_apart.h"

#include "lipscope/core/errors.h"

namespace lipscope {
namespace {

Vector softmax(const Vector& x) {
  const Vector e = (x.array() - x.maxCoeff()).exp();
  return e / e.sum();
}

}  // namespace

Vector head_shares(const Vector& learnt) {
  require(learnt.size() >= 1 && learnt.allFinite(),
          "heads apart: {} shares, which must be finite", learnt.size());
  return softmax(learnt).cwiseSqrt();
}

Matrix distance_weights(const Matrix& bias) {
  require(bias.size() > 0 && bias.allFinite(),
          "position heads: a bias [{}x{}] of distances, which must be finite",
          bias.rows(), bias.cols());
  Matrix weights(bias.cols(), bias.rows());
  for (Index h = 0; h < bias.rows(); ++h)
    weights.col(h) = softmax(bias.row(h).transpose());
  return weights;
}

Matrix apart_output(const Vector& shares, const ApartOutput& where) {
  const Index k = where.head_width, rows = shares.size() * k;
  require(k >= 1 && where.first >= 0 && where.first + rows <= where.width,
          "heads apart: {} heads of width {} from coordinate {} on, of {}",
          shares.size(), k, where.first, where.width);
  Matrix output = Matrix::Zero(rows, where.width);
  for (Index i = 0; i < rows; ++i) output(i, where.first + i) = shares[i / k];
  return output;
}

}  // namespace lipscope
