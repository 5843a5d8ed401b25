#include "lipscope/spectral/inf_norm.h"

#include <cmath>
#include <vector>

#include "lipscope/core/errors.h"
#include "lipscope/core/parallel.h"

namespace lipscope {

InfNorm inf_norm(const LinearOperator<double>& a,
                 const InfNormOptions& options) {
  const Index rows = a.rows(), cols = a.cols();
  require(rows > 0 && cols > 0, "inf_norm: a [{}x{}] operator", rows, cols);
  require(rows <= options.max_entries / cols,
          "inf_norm: a [{}x{}] operator has more than {} entries to sweep",
          rows, cols, options.max_entries);

  const auto row_of = [&](Index i) {
    return a.apply_adjoint(Vector::Unit(rows, i));
  };
  std::vector<double> sums(rows);
  parallel_for(rows, options.threads,
               [&](Index i) { sums[i] = row_of(i).lpNorm<1>(); });

  InfNorm norm;
  norm.rows = rows;
  for (Index i = 0; i < rows; ++i) {
    if (!std::isfinite(sums[i]))
      throw RunError(
          fmt::format("inf_norm: row {} of {} sums to {}", i, rows, sums[i]));
    if (sums[i] > norm.value) {
      norm.value = sums[i];
      norm.row = i;
    }
  }
  norm.direction = row_of(norm.row).unaryExpr(
      [](double entry) { return entry < 0.0 ? -1.0 : 1.0; });
  return norm;
}

}  // namespace lipscope
