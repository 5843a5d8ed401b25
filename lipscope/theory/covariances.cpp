#include "lipscope/theory/covariances.h"

#include <algorithm>
#include <vector>

#include "lipscope/core/parallel.h"
#include "lipscope/theory/norms.h"

namespace lipscope {
namespace {

using Row = Eigen::RowVectorXd;

// max_i ‖A Cov_i‖ and max_i |w_i|√λ_max(Cov_i) of one head
struct Largest {
  double diagonal = 0.0, pull = 0.0;
};

Largest largest_of_rows(const LayerParts& l, const Matrix& query_factor,
                        const LayerAt& at, Index h) {
  const Index n = at.x.rows();
  const Matrix keys = at.k.middleCols(h * l.k, l.k);
  const Matrix weights = l.key.middleCols(h * l.k, l.k);
  std::vector<Largest> of_row(n);
  parallel_for(n, l.threads, [&](Index i) {
    const TokenRange seen = visible(l.mask, i, n);
    const Row p = at.p[h].row(i).segment(seen.begin, seen.size());
    Matrix centred = at.x.middleRows(seen.begin, seen.size());
    const Row mean = p * centred;
    centred.rowwise() -= mean;
    // A Cov_i = W_Q Σ_j P_ij k_jᵀ(x_j − m_i): F in place of W_Q
    const Matrix mixed = keys.middleRows(seen.begin, seen.size()).transpose() *
                         (p.transpose().asDiagonal() * centred);
    of_row[i].diagonal = weight_norm_above(query_factor.transpose() * mixed);
    const Matrix scaled = p.cwiseSqrt().transpose().asDiagonal() * centred;
    const Vector w = weights * at.q.row(i).segment(h * l.k, l.k).transpose();
    of_row[i].pull = length_above(w) * weight_norm_above(scaled);
  });
  Largest most;
  for (const Largest& c : of_row) {
    most.diagonal = std::max(most.diagonal, c.diagonal);
    most.pull = std::max(most.pull, c.pull);
  }
  return most;
}

}  // namespace

const Statement covariances_statement{
    .name = "covariances",
    .norm = Norm::two,
    .mask = "any",
    .citation =
        "lipscope: covariances and column sums at the input, proof in "
        "theory/covariances.h"};

Magnitude covariances(const LayerParts& l, const Matrix& query_factor,
                      const LayerAt& at, Index h) {
  const Largest c = largest_of_rows(l, query_factor, at, h);
  const Matrix& p = at.p[h];
  const double columns = p.colwise().sum().maxCoeff();
  return Magnitude(c.diagonal) + nonnegative_norm_above(p) +
         Magnitude(c.pull) * root(columns);
}

}  // namespace lipscope
