#pragma once

#include <algorithm>
#include <functional>

#include "lipscope/core/gemm.h"
#include "lipscope/core/parallel.h"
#include "lipscope/core/rng.h"

/// The layers of a model that learns. Each has a forward and, under it, its
/// backward; each remembers of the forward what the backward needs, in buffers
/// that serve again at the next step. Activations are [N×d] with N =
/// sequences·length: the tokens of a batch, one sequence under another.
/// backward overwrites the gradients of the layer's own tensors.
///
///   x, y   activations        gx, gy   gradients of the loss by them
///   W, b   learned tensors    gW, gb   gradients of the loss by them
namespace lipscope {

/// What goes through all layers besides activations.
struct Pass {
  Index sequences = 1, length = 1;
  int threads = 0;       ///< 0: all cores
  double dropout = 0.0;  ///< 0 but in training
  Rng noise = Rng(0);    ///< of dropout; one stream for each place of it
  Precision products = Precision::full;  ///< high in training

  Index rows() const { return sequences * length; }
};

/// How many rows of activations are one piece of work.
inline constexpr Index piece_rows = 512;

/// Calls task(begin, count) for fixed pieces of the rows.
inline void for_row_pieces(Index rows, int threads,
                           const std::function<void(Index, Index)>& task) {
  parallel_for((rows + piece_rows - 1) / piece_rows, threads, [&](Index i) {
    task(i * piece_rows, std::min(piece_rows, rows - i * piece_rows));
  });
}

}  // namespace lipscope
