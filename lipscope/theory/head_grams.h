#pragma once

#include "lipscope/theory/norms.h"

namespace lipscope {

/// For every token i, the Gram matrix of what the weights W of all heads make
/// of r rows x_i^{h,s} for each head, given the Gram matrix G of W's rows:
///
///   entry ((h,s), (g,t)) of matrix i = x_i^{h,s} G_hg (x_i^{g,t})ᵀ,
///
/// G_hg the part [w×w] of two heads. Row i·r + s of `x` has the rows s of
/// token i, head beside head. Products are made for all tokens together; row i
/// of the result is matrix i, its rows end to end.
Matrix head_grams(const Gram& gram, const Matrix& x, Index heads, Index r = 1);

/// How far one of them can be from exact in the 2-norm, from ‖x_i‖_F²: what G
/// errs by, and two sums of w terms.
double head_gram_error(const Gram& gram, Index width, double size2);

/// A direction u_i of all heads together for each token, |u_i| ≤ 1, and uG.
struct SharedDirection {
  Matrix u, through;  ///< [n×H·w]
  Vector size2;       ///< u_iG u_iᵀ
};
SharedDirection direction_through(const Gram& gram, Matrix u);

/// From the matrices of rows x to those of x − (x·u)u, where a row x^{h,s} is 0
/// outside of head h: with t_a = x_a·u and m_a = x_aG uᵀ entry (a, b) loses
/// t_bm_a + t_am_b − t_at_b uGuᵀ. The first of the matrices is of token
/// `first`.
void remove_direction(const SharedDirection& direction, Index first,
                      const Matrix& x, Index heads, Index r, Matrix& grams);

/// head_gram_error after that: |t_a| ≤ |x_a|, so that each of the four terms
/// errs by no more than the first may, with sums of H·w terms; twice that.
double removed_gram_error(const Gram& gram, double size2);

}  // namespace lipscope
