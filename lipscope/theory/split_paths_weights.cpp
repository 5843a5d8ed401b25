#include <cmath>

#include "lipscope/theory/magnitude.h"
#include "lipscope/theory/split_paths.h"

namespace lipscope {
namespace {

// the norms of a Gram matrix between heads, [H×H]
Matrix norms_between_heads(const Gram& gram, Index heads) {
  const Index w = gram.g.rows() / heads;
  Matrix out(heads, heads);
  for (Index h = 0; h < heads; ++h)
    for (Index g = 0; g <= h; ++g)
      out(h, g) = out(g, h) =
          power_norm_above(gram.g.block(h * w, g * w, w, w)) + gram.error;
  return out;
}

// the norms of the heads' weights, from their Gram matrices
std::vector<double> head_norms(const Gram& gram, Index heads) {
  const Index w = gram.g.rows() / heads;
  std::vector<double> out;
  for (Index h = 0; h < heads; ++h)
    out.push_back(well_above(std::sqrt(
        eigenvalue_above(gram.g.block(h * w, h * w, w, w), gram.error))));
  return out;
}

}  // namespace

SplitWeights split_weights(const LayerParts& l) {
  SplitWeights s;
  s.value = gram_of_columns(l.value);
  s.key = gram_of_columns(l.key);
  s.query = gram_of_columns(l.query);
  s.output = l.projected
                 ? gram_of_rows(l.output)
                 : Gram{Matrix::Identity(l.heads * l.w, l.heads * l.w), 0.0,
                        std::sqrt(static_cast<double>(l.heads * l.w))};
  s.norm_value = std::sqrt(eigenvalue_above(s.value.g, s.value.error));
  s.norm_query = std::sqrt(eigenvalue_above(s.query.g, s.query.error));
  s.norm_output = std::sqrt(eigenvalue_above(s.output.g, s.output.error));
  s.head_query = head_norms(s.query, l.heads);
  s.head_output = head_norms(s.output, l.heads);
  s.value_between_heads = norms_between_heads(s.value, l.heads);
  if (l.projected) {
    s.output_between_heads = norms_between_heads(s.output, l.heads);
    s.output_factor = factor_above(s.output);
    s.value_factor = factor_above(s.value);
  }
  return s;
}

}  // namespace lipscope
