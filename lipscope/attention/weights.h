#pragma once

#include <string>
#include <vector>

#include "lipscope/attention/kind.h"
#include "lipscope/attention/mask.h"
#include "lipscope/core/matrix.h"

namespace lipscope {

/// The parameters of one attention layer, in f64: from them a layer is made in
/// either precision. Absent matrices and biases are empty.
///
///   query, key [d×H·k], value [d×H·w], output [H·w×e]
///
/// Head h reads columns h·k … of query and key, h·w … of value, and rows h·w …
/// of output. Tied L2 attention has no key.
///
/// Grouped keys and values [Ainslie23]: with G = key_heads, key is [d×G·k] and
/// value [d×G·w], and query head h reads key and value head h/(H/G).
struct AttentionWeights {
  Matrix query, key, value, output;
  Vector query_bias, key_bias, value_bias, output_bias;
  Index heads = 1;
  Index key_heads = 0;  ///< G; 0: as many as heads

  Index features() const { return query.rows(); }                      ///< d
  Index query_width() const { return query.cols() / heads; }           ///< k
  Index groups() const { return key_heads == 0 ? heads : key_heads; }  ///< G
  Index value_width() const { return value.cols() / groups(); }        ///< w
  /// The key and value head that query head h reads.
  Index key_head(Index h) const { return h / (heads / groups()); }
};

/// Throws std::invalid_argument, naming the parameter and both numbers, unless
/// the shapes fit each other and the kind and every number is finite.
void require_sound(const AttentionWeights& weights, Kind kind);

}  // namespace lipscope
