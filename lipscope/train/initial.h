#pragma once

#include <functional>

#include "lipscope/core/matrix.h"
#include "lipscope/core/rng.h"

/// How tensors begin.
///
/// Tokens of transformers begin with their place in the first coordinates, as
/// waves, and with their character in the others. Attention that compares
/// queries with keys of their own learns to tell the two apart; tied L2
/// attention cannot learn it in time, as the same x W_Q says which tokens are
/// near and what is read off them: mixed at random, whatever makes it see
/// neighbours also makes it see the same letters, and its loss stays that of a
/// table of pairs for hundreds of steps. So its heads begin apart as well: half
/// of a head's features read places, with a reach of its own, and decide what
/// is near; the other half reads characters, faintly, and is what its values
/// carry.
namespace lipscope {

/// A number of a tensor from its row and column, and a normal number.
using Entry = std::function<double(Index row, Index col, double normal)>;

struct Initial {
  enum class Form {
    entries,    ///< each number by itself
    orthogonal  ///< a matrix, each block by itself: gain · orthonormal()
  };

  double mean = 0.0, deviation = 0.0;  ///< of normal numbers, or
  Entry entry = {};                    ///< each by itself
  Form form = Form::entries;
  double gain = 1.0;  ///< all singular values of an orthogonal start
};

/// A matrix of zeros: what it makes adds nothing at first.
Initial zeros();

/// A matrix whose singular values are all `gain`.
Initial orthogonal(double gain = 1.0);

/// A matrix with orthonormal columns, or with orthonormal rows where it has
/// more columns than rows, uniform among all of those: Q of a normal matrix
/// G = QR with positive numbers on the diagonal of R. In f64, by Householder's
/// reflections.
Matrix orthonormal(Index rows, Index cols, Rng rng);

/// How many of the coordinates of a token begin as its place: a quarter, two
/// for each wave; none where tokens are narrower than 8.
Index place_coordinates(Index width);

/// The rows of a table of positions: waves of lengths from 2π to 2π·64.
Initial waves(Index width);
/// The rows of a table of characters: normal, and zero where places stand.
Initial characters_beside_places(Index width);

/// W_Q and W_V of tied L2 attention: scores of neighbours begin at −1 in the
/// head that sees least far and at −1/64 in the one that sees farthest, those
/// of two characters at −1/6, and outputs at about the size of what is read, or
/// 2/layers of it: where the outputs of many layers drown the tokens, deep
/// models do not learn without a warm-up. With fewer than 8 coordinates or 2
/// features a head: normal numbers of like size.
Initial tied_query(Index width, Index heads);
Initial tied_value(Index width, Index heads, Index layers);

}  // namespace lipscope
