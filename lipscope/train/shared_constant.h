#pragma once

#include "lipscope/train/language_model.h"

namespace lipscope {

/// Shares a limited constant among all parts of a model of tied L2 attention
/// without norms. The constant is Π(1 + L_branch) L_head; where it is above the
/// limit, the largest factors are cut to one level t,
///
///   Σ_i min(log factor_i, share_i t) = log limit,
///
/// so that what one part does not need is there for the others. The share of
/// an attention is half that of an MLP or of the head: most of its bound is
/// what no input reaches. In a matrix that has to shrink by a little, the
/// leading singular values shrink (control/spectral_trim.h) and the rest stays;
/// what is left above the level is taken off by scaling.
void share_constant(const LanguageModel<float>& model, VectorOf<float>& weights,
                    double limit, int threads = 0);

}  // namespace lipscope
