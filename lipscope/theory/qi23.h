#pragma once

#include "lipscope/theory/own.h"

namespace lipscope {

/// Scaled cosine attention with normalised values, everywhere, any mask, before
/// W_O [Qi23, with the ½ of Nair25 for softmax]:
///
///   Lip₂ ≤ n²ντε^{-1/2}‖W_K‖ + nντε^{-1/2}‖W_Q‖ + 2nνε^{-1/2}‖W_V‖
extern const Statement qi23_cosine_statement;
Magnitude qi23_cosine(const CosineNorms& norms, Index n);

}  // namespace lipscope
