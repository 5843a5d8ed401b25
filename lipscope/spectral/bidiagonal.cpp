#include "lipscope/spectral/bidiagonal.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lipscope {

TopPair top_of_bidiagonal(const std::vector<double>& alpha,
                          const std::vector<double>& beta) {
  const std::size_t m = alpha.size();
  double scale = 0.0;
  for (std::size_t j = 0; j < m; ++j)
    scale = std::max({scale, alpha[j], j + 1 < m ? beta[j] : 0.0});
  TopPair top{0.0, std::vector<double>(m, 1.0 / std::sqrt(double(m)))};
  if (scale == 0.0) return top;

  // T has d on its diagonal and e ≥ 0 beside it
  std::vector<double> d(m), e(m, 0.0);
  for (std::size_t j = 0; j < m; ++j) {
    const double a = alpha[j] / scale, b = j > 0 ? beta[j - 1] / scale : 0.0;
    d[j] = a * a + b * b;
    if (j + 1 < m) e[j] = a * (beta[j] / scale);
  }

  // θ > λ₁(T) exactly when all pivots of θ − T are positive
  std::vector<double> pivot(m);
  const auto above = [&](double theta) {
    for (std::size_t j = 0; j < m; ++j) {
      pivot[j] = theta - d[j];
      if (j > 0) pivot[j] -= e[j - 1] * e[j - 1] / pivot[j - 1];
      if (!(pivot[j] > 0.0)) return false;
    }
    return true;
  };
  double low = 0.0, high = 0.0;
  for (std::size_t j = 0; j < m; ++j) {
    low = std::max(low, d[j]);
    high = std::max(high, d[j] + e[j] + (j > 0 ? e[j - 1] : 0.0));
  }
  while (!above(high)) high *= 1.0 + 4 * std::numeric_limits<double>::epsilon();
  for (double middle = low + (high - low) / 2; low < middle && middle < high;
       middle = low + (high - low) / 2)
    (above(middle) ? high : low) = middle;

  // (θ − T)⁻¹ has no negative entry: these sweeps add positive numbers only
  above(high);
  std::vector<double>& y = top.y;
  for (int sweep = 0; sweep < 3; ++sweep) {
    for (std::size_t j = 1; j < m; ++j)
      y[j] += e[j - 1] / pivot[j - 1] * y[j - 1];
    y[m - 1] /= pivot[m - 1];
    for (std::size_t j = m - 1; j-- > 0;)
      y[j] = (y[j] + e[j] * y[j + 1]) / pivot[j];
    // a plain sum: Eigen's would depend on where y happens to lie in memory
    double squares = 0.0;
    for (const double entry : y) squares += entry * entry;
    for (double& entry : y) entry /= std::sqrt(squares);
  }

  // ‖B y‖, whose square is not lost to rounding as that of θ would be
  double squares = 0.0;
  for (std::size_t j = 0; j < m; ++j) {
    const double row = alpha[j] / scale * y[j] +
                       (j + 1 < m ? beta[j] / scale * y[j + 1] : 0.0);
    squares += row * row;
  }
  top.value = scale * std::sqrt(squares);
  return top;
}

}  // namespace lipscope
