#include "lipscope/audit/token_bounds.h"

#include "lipscope/attention/kinds.h"
#include "lipscope/core/errors.h"
#include "lipscope/theory/layer_bounds.h"

namespace lipscope::audit {

bool lipschitz_everywhere(const Selection& selection,
                          std::optional<Index> layer) {
  return kind_of(selection.kind).lipschitz_under(selection.mask_of(layer));
}

TokenSet tokens_within(const Radius& radius, const Subject& subject,
                       std::optional<Index> layer) {
  if (radius.is_norm_layer()) {
    const std::optional<NormWeights> norm = input_norm(subject, layer);
    if (!norm && subject.layer)
      throw InputError(
          fmt::format("--radius ln: {} has no ln_gain, so no "
                      "layer norm bounds its tokens",
                      subject.name));
    if (!norm)
      throw InputError(fmt::format(
          "{}: no norm stands ahead of the attention of layer {}, so nothing "
          "bounds its tokens; give --radius R",
          subject.name, layer.value_or(0)));
    return {norm_layer_radius(*norm), norm};
  }
  if (radius.is_everywhere())
    throw InputError(
        "--radius everywhere: expected a finite number above 0, or ln");
  return {radius.value(), {}};
}

TokenSet tokens_ahead(const Subject& subject, const Selection& selection,
                      std::optional<Index> layer) {
  if (lipschitz_everywhere(selection, layer) && !input_norm(subject, layer))
    return {};
  return tokens_within(Radius::norm_layer(), subject, layer);
}

std::vector<Bound> bounds_of(Maps& maps, const Selection& selection,
                             std::optional<Index> layer,
                             std::optional<Index> head, Index n,
                             const TokenSet& tokens) {
  return attention_bounds(maps.weights(layer), selection.map != MapName::core,
                          map_options(selection, head), n, tokens);
}

std::optional<Bound> best_bound_of(Maps& maps, const Selection& selection,
                                   std::optional<Index> layer,
                                   std::optional<Index> head, Index n,
                                   const TokenSet& tokens) {
  return best_bound(bounds_of(maps, selection, layer, head, n, tokens),
                    selection.norm);
}

}  // namespace lipscope::audit
