#pragma once

#include <string>

namespace lipscope {

/// How the norm of an operator was computed.
enum class NormMethod {
  dense_gram,       ///< 2-norm: eigenvalues of the Gram matrix (dense.h)
  golub_kahan_f32,  ///< 2-norm: the direction found in f32 (golub_kahan.h)
  golub_kahan_f64,  ///< 2-norm: the direction found in f64
  row_sweep,        ///< inf-norm: all rows (inf_norm.h)
  alternating       ///< token norm: alternating maximisation (token_norm.h)
};

std::string name_of(NormMethod method);  ///< "dense-gram", …

}  // namespace lipscope
