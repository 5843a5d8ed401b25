#include "lipscope/core/cholesky.h"

#include <Eigen/Cholesky>
#include <algorithm>

#include "lipscope/core/errors.h"
#include "lipscope/core/parallel.h"

namespace lipscope {
namespace {

constexpr Index tile_size = 128;

using Columns = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic>;

}  // namespace

bool factor_in_place(Matrix& a, int threads) {
  const Index n = a.rows();
  require(a.cols() == n, "factor_in_place: [{}x{}] is not square", n, a.cols());
  const Index tiles = (n + tile_size - 1) / tile_size;
  const auto begin = [](Index t) { return t * tile_size; };
  const auto size = [&](Index t) { return std::min(tile_size, n - begin(t)); };
  for (Index c = 0; c < tiles; ++c) {
    // what the columns on the left take from this one
    parallel_for(tiles - c, threads, [&](Index below) {
      const Index r = c + below;
      if (c == 0) return;
      auto tile = a.block(begin(r), begin(c), size(r), size(c));
      const Columns taken = a.block(begin(r), 0, size(r), begin(c)) *
                            a.block(begin(c), 0, size(c), begin(c)).transpose();
      if (r == c)
        tile.triangularView<Eigen::Lower>() -= taken;
      else
        tile -= taken;
    });
    Columns pivot = a.block(begin(c), begin(c), size(c), size(c));
    Eigen::LLT<Eigen::Ref<Columns>> llt(pivot);
    const Columns lower = llt.matrixL();
    if (llt.info() != Eigen::Success || !lower.allFinite() ||
        !(lower.diagonal().minCoeff() > 0.0))
      return false;
    a.block(begin(c), begin(c), size(c), size(c))
        .triangularView<Eigen::Lower>() = lower;
    parallel_for(tiles - c - 1, threads, [&](Index below) {
      const Index r = c + 1 + below;
      // X Lᵀ = tile, as L Xᵀ = tileᵀ
      auto tile = a.block(begin(r), begin(c), size(r), size(c));
      Columns solved = tile.transpose();
      lower.triangularView<Eigen::Lower>().solveInPlace(solved);
      tile = solved.transpose();
    });
  }
  return true;
}

}  // namespace lipscope
