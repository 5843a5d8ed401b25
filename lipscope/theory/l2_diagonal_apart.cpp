#include "lipscope/theory/l2_diagonal_apart.h"

#include <cmath>

namespace lipscope {

const Statement l2_diagonal_apart_statement{
    .name = "l2_diagonal_apart",
    .norm = Norm::two,
    .mask = "any",
    .citation =
        "lipscope: Kim21's lemma with the diagonal apart, proof in "
        "theory/l2_diagonal_apart.h"};

Magnitude l2_diagonal_apart(double p, Index n, Index k) {
  const double tokens = static_cast<double>(n);
  const double inverse_root = well_above(1.0 / std::sqrt(double(k)));
  return (Magnitude(p) * 2.0 +
          (Magnitude(1.0) + Magnitude(p) * 2.0) * root(tokens)) *
         inverse_root;
}

}  // namespace lipscope
