#pragma once

#include "lipscope/train/initial.h"

/// How a contractive model begins so that it hears its neighbours.
///
/// Attention that is divided by its bound adds a small share of a token to a
/// token, 1/(4p√k + 1) of one coordinate to another at most. In a coordinate
/// where the token itself is loud nothing can make that out. So characters
/// begin in the first quarter of the coordinates, the loud ones; heads read
/// these and write into the others, which are quiet. Norms and MLPs are free:
/// they bring what is written there to the size of a token,
///
///   post-norm  the norm behind attention multiplies quiet coordinates by G,
///              that behind the MLP by 1/G;
///   pre-norm   tokens, and what MLPs add to them, begin 1/G as long as what
///              attention reads of them.
///
/// Each feature of a head reads one coordinate and writes one, so that no sum
/// of absolute values in a divisor is above what passes. As many features as
/// there are loud coordinates look at one distance: those of the first heads at
/// the token before, the next at the one before that. As many features as there
/// are loud coordinates, at the end, write nothing at first.
namespace lipscope {

Index loud_coordinates(Index width);  ///< a quarter, one at least

/// The size of a loud coordinate, where only those are not 0, behind a norm.
double loud_size(Index width);

/// The rows of a table of characters: normal in loud coordinates, times `size`.
Initial loud_characters(Index width, double size);

/// W_Q, W_V [d×Hk] and W_O [Hk×d] with k features a head. Scores of two
/// characters begin at −1/3.
Initial quiet_query(Index width, Index k);
Initial quiet_value(Index width);
Initial quiet_output(Index width);

/// The number for each distance [H×T]: 0 for the token itself and at the
/// distance that the head looks at, and lower by 1 for each step from there.
Initial quiet_distances(Index width, Index k);

/// Gains of a norm [1×d]: 1 in loud coordinates and `quiet` in the others.
Initial quiet_gains(Index width, double quiet);

}  // namespace lipscope
