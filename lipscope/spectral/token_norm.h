#pragma once

#include <cstdint>

#include "lipscope/operators/linear_operator.h"

namespace lipscope {

struct TokenNormOptions {
  double tolerance = 1e-10;  ///< done when a step gains less than this share
  int max_steps = 200;       ///< of each start
  int starts = 4;            ///< random directions that all tokens see
  /// Tokens that are tried one by one as the one that moves most.
  Index sweep = 64;
  std::uint64_t seed = 0;
  Vector start = {};  ///< if given, the one start, and no sweep
  /// A direction to start from beside the random ones; empty: none.
  Vector likely = {};
};

/// The norm that the largest token norm induces, from below.
struct TokenNorm {
  double value = 0.0;      ///< |(A v)_token| for `direction` v, |v_j| ≤ 1
  Index token = 0;         ///< of the output
  Vector direction;        ///< v, of unit tokens
  Vector pull;             ///< u = (A v)_token/value at its token, 0 elsewhere
  int steps = 0;           ///< applications of A, and of Aᵀ
  bool converged = false;  ///< the best start came to rest
};

/// max over v with |v_j|₂ ≤ 1 for every token j, of max_i |(A v)_i|₂, from
/// below. A takes n tokens to n tokens.
///
/// For a token i and a unit u, the best v is v_j = (Aᵀ(e_i⊗u))_j made unit; for
/// that v, the best i and u are those of the longest token of A v. Alternating
/// never loses, and ends in a local maximum: convex maximisation, with no
/// certificate from above.
TokenNorm token_norm(const LinearOperator<double>& a, Index n,
                     const TokenNormOptions& options = {});

}  // namespace lipscope
