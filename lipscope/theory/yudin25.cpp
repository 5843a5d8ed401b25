#include "lipscope/theory/yudin25.h"

#include <algorithm>

namespace lipscope {

double yudin25_g1(const Vector& p) {
  double first = 0.0, second = 0.0;
  for (const double x : p) {
    if (x > first) {
      second = first;
      first = x;
    } else {
      second = std::max(second, x);
    }
  }
  return well_above(first * (1.0 - first + second));
}

const Statement yudin25_local_statement{
    .name = "yudin25_local",
    .norm = Norm::two,
    .mask = "any",
    .citation =
        "Yudin25, Jacobian norm of a head from its attention weights; "
        "no query bias"};

Magnitude yudin25_local(double norm_p, double norm_x, double norm_a,
                        double largest_g1) {
  return Magnitude(norm_p) +
         Magnitude(2.0) * norm_x * norm_x * norm_a * largest_g1;
}

}  // namespace lipscope
