#include "lipscope/theory/kim21.h"

#include <algorithm>
#include <cmath>

#include "lipscope/theory/norms.h"

namespace lipscope {

L2HeadNorms l2_head_norms(const HeadWeights& head) {
  const double value = weight_norm_above(head.value);
  return {.query = weight_norm_above(head.query),
          .value = value,
          .projected =
              head.output.size() == 0
                  ? value
                  : product_norm_above(head.value, head.output.transpose()),
          .query_inf = next_above(row_sum_above(head.query) *
                                  row_sum_above(head.query.transpose())),
          .value_inf = row_sum_above(head.value.transpose())};
}

const Statement kim21_inf_statement{
    .name = "kim21_inf",
    .norm = Norm::inf,
    .mask = "any",
    .citation =
        "Kim21, Lipschitz constant of L2 multi-head attention in the "
        "inf-norm"};

Magnitude kim21_inf(Index n, Index k) {
  const double inverse_root = well_above(1.0 / std::sqrt(double(k)));
  return Magnitude(kim21_phi_inverse(n)) * 4.0 + inverse_root;
}

Magnitude kim21_inf_weight_factor(const std::vector<L2HeadNorms>& heads,
                                  double output_inf) {
  double query = 0.0, value = 0.0;
  for (const L2HeadNorms& h : heads) {
    query = std::max(query, h.query_inf);
    value = std::max(value, h.value_inf);
  }
  return Magnitude(output_inf) * query * value;
}

Magnitude kim21_weight_factor(const std::vector<L2HeadNorms>& heads) {
  Magnitude sum = 0.0;
  for (const L2HeadNorms& h : heads) {
    const Magnitude one = Magnitude(h.query) * h.query * h.value;
    sum = sum + one * one;
  }
  return root(sum);
}

const Statement kim21_two_statement{
    .name = "kim21_two",
    .norm = Norm::two,
    .mask = "any",
    .citation =
        "Kim21, Lipschitz constant of L2 multi-head attention in the "
        "2-norm, with the fourth power of the query norm"};

Magnitude kim21_two(double p, Index n, Index k) {
  const double inverse_root = well_above(1.0 / std::sqrt(double(k)));
  return root(static_cast<double>(n)) * inverse_root *
         (Magnitude(p) * 4.0 + 1.0);
}

}  // namespace lipscope
