#pragma once

#include <string>

namespace lipscope {

/// How sequences of tokens, and so what a map does to them, are measured.
enum class Norm {
  two,    ///< 2-norm of all entries
  inf,    ///< the largest entry
  token,  ///< the 2-norm of the longest token
  w2,     ///< of tokens with masses: the Wasserstein distance W₂
  d2      ///< the same under a mask: the conditional distance
};

std::string name_of(Norm norm);  ///< "2", "inf", "token", "w2", "d2"

/// One of the three norms of sequences: "2", "inf" or "token". InputError,
/// beginning with `where`, for other words.
Norm parse_norm(const std::string& word, const std::string& where);

}  // namespace lipscope
