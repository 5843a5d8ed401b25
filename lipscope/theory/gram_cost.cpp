#include "lipscope/theory/gram_cost.h"

#include <fmt/core.h>

#include <algorithm>

#include "lipscope/core/memory.h"
#include "lipscope/theory/gram_by_pieces.h"
#include "lipscope/theory/leading_apart.h"

namespace lipscope {
namespace {

// what the parts take ahead of the output, all pairs of tokens
GramCost cost_of_parts(const LayerParts& l, Index tokens, double width) {
  const double n = static_cast<double>(tokens);
  const double heads = static_cast<double>(l.heads);
  const double d = static_cast<double>(l.value.rows());
  const double full = heads * static_cast<double>(l.w);
  const double pairs = l.plain ? n : n * n;  // of which p_ij is kept
  return {.tokens = tokens,
          .rows = n * width,
          .flops = n * n * n * (2 * full * full + heads * heads * d),
          .bytes = 8 * (pairs * heads * (d + 2 * full) + n * full * full)};
}

}  // namespace

std::string GramCost::text() const {
  return fmt::format(
      "a matrix of {} rows at n = {}: {} and {:.1e} operations, of at most {} "
      "and {:.0e}",
      rows, tokens, bytes_text(bytes), flops, bytes_text(most_bytes),
      most_flops);
}

GramCost exact_cost(const LayerParts& l, Index tokens) {
  const Index full = l.heads * l.w;
  const double width =
      static_cast<double>(l.projected ? std::min(l.output.cols(), full) : full);
  GramCost cost = cost_of_parts(l, tokens, width);
  const double n = static_cast<double>(tokens),
               high = static_cast<double>(full);
  cost.flops +=
      cost.rows * cost.rows * cost.rows / 3 + n * n * high * high * width;
  cost.bytes += 8 * cost.rows * cost.rows;
  cost.most_flops = 1e12;
  return cost;
}

GramCost leading_cost(const LayerParts& l, Index tokens) {
  const double full = static_cast<double>(l.heads * l.w);
  GramCost cost = cost_of_parts(l, tokens, full);
  const double n = static_cast<double>(tokens);
  const double heads = static_cast<double>(l.heads);
  if (l.plain) {  // theory/gram_by_pieces.h
    cost.flops =
        n * n * full *
        (n * (full + heads * heads) + 2.5 * heads * full + 0.65 * full * full);
    cost.bytes += pieces_bytes(l, tokens);
  } else {
    cost.flops += 1.3 * n * n * full * full * full;
  }
  cost.bytes += 8 * cost.rows * 2 * static_cast<double>(most_leading);
  cost.most_flops = 2e13;
  return cost;
}

}  // namespace lipscope
