#include "lipscope/train/zero_outputs.h"

namespace lipscope {

std::string objection_to_zero_outputs(const LanguageModelConfig& c,
                                      const WeightLimits& limits) {
  if (c.mixer == Mixer::lstm) return "an LSTM has no layers that add";
  if (c.mixer == Mixer::contractive_l2)
    return "contractive-l2 is divided by the norms of its matrices, which "
           "must not be zero";
  if (c.heads_apart)
    return "heads apart have no output matrix; take heads that share one";
  if (c.join == Join::none)
    return "with residual none nothing would come through; take add or convex";
  if (limits.lipschitz && limits.rule == SingularValues::free)
    return "what shares a constant among all matrices must not find zeros; "
           "take a rule for singular values";
  return "";
}

void make_outputs_zero(const Layout& layout, VectorOf<float>& weights) {
  for (const Layout::Tensor& t : layout.tensors())
    if (t.name.ends_with(".attn.o.weight") ||
        t.name.ends_with(".mlp.down.weight"))
      tensor(weights, t.slot).setZero();
}

}  // namespace lipscope
