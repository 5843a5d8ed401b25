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

}  // namespace lipscope
