#include "lipscope/train/newhouse25_limits.h"

#include <fmt/format.h>

#include <cmath>

#include "lipscope/train/singular_values.h"

namespace lipscope {

std::string objection_to_newhouse25(const LanguageModelConfig& c) {
  if (c.mixer != Mixer::dot || c.position_heads > 0 || c.heads_apart)
    return "its limits of matrices are those of dot-product heads that share "
           "an output matrix; take model dot without heads apart";
  if (c.activation != Activation::gelu)
    return fmt::format(
        "its limits of matrices are those of MLPs with gelu, not with {}",
        name_of(c.activation));
  return "";
}

void keep_newhouse25_limits(const LanguageModel<float>& model,
                            VectorOf<float>& weights, SingularValues rule,
                            int threads) {
  const LanguageModelConfig& c = model.config();
  const double k = static_cast<double>(c.width / c.heads);
  const double wider =
      std::sqrt(static_cast<double>(c.hidden) / static_cast<double>(c.width));
  for (Index i = 0; i < c.layers; ++i) {
    const auto matrix = [&](const char* name) {
      return tensor(
          weights, model.layout().slot(fmt::format("h.{}.{}.weight", i, name)));
    };
    View<float> qkv = matrix("attn.qkv");
    const double limits[] = {std::pow(k, -0.25), std::pow(k, -0.25), 1.0 / 3};
    for (Index part = 0; part < 3; ++part)
      limit_singular_values(
          View<float>(qkv.data() + part * c.width, c.width, c.width,
                      Eigen::OuterStride<>(qkv.outerStride())),
          {rule, limits[part], threads});
    limit_singular_values(matrix("attn.o"), {rule, 1.0, threads});
    limit_singular_values(matrix("mlp.up"), {rule, wider, threads});
    limit_singular_values(
        matrix("mlp.down"),
        {rule, 1.0 / (wider * activation_slope(c.activation)), threads});
    for (const char* bias : {"up", "down"})
      tensor(weights,
             model.layout().slot(fmt::format("h.{}.mlp.{}.bias", i, bias)))
          .setZero();
  }
}

}  // namespace lipscope
