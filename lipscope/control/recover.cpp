#include "lipscope/control/recover.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lipscope/control/contractive.h"
#include "lipscope/core/errors.h"
#include "lipscope/model/pass.h"
#include "lipscope/theory/layer_bounds.h"

namespace lipscope {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

void require_no_norms(const Model& model) {
  if (model.config.has_norms())
    throw InputError(fmt::format(
        "{}: has LayerNorms, which forget the mean and the length of what they "
        "read: nothing brings it back; a model without norms can be tried, "
        "and one trained with --invertible is sure to be inverted",
        model.parameters.source()));
  const ModelConfig& c = model.config;
  if (c.carry != 1.0 || c.residual_scale != 1.0)
    throw InputError(fmt::format(
        "{}: its layers are {:g} x + {:g} f(x); only x + f(x) is brought back",
        model.parameters.source(), c.carry, c.residual_scale));
}

ResidualModel::ResidualModel(const Model& model, Index n, int threads) {
  require_no_norms(model);
  for (Index l = 0; l < model.config.layers; ++l) {
    const LayerWeights layer = load_layer(model, l);
    std::optional<double> attention;
    if (kind_bounds(layer.kind).inf)
      if (const std::optional<Bound> bound =
              best_bound(attention_bounds(layer, true, {}, n, {}), Norm::inf))
        attention = bound->value;
    add(layer_map<double>(layer, MapName::attn, {.threads = threads}),
        fmt::format("layer {} attention", l), attention);
    add(std::make_unique<Mlp<double>>(layer.mlp, threads),
        fmt::format("layer {} MLP", l),
        mlp_lipschitz(layer.mlp, Norm::inf).value());
  }
}

void ResidualModel::add(MapPtr<double> f, std::string name,
                        std::optional<double> lipschitz) {
  if (lipschitz && !std::isfinite(*lipschitz)) lipschitz.reset();
  residuals_.push_back({.f = f.get(), .scale = 1.0, .lipschitz = lipschitz});
  maps_.push_back(std::move(f));
  names_.push_back(std::move(name));
}

Matrix ResidualModel::operator()(Matrix x) const {
  for (const ResidualMap& g : residuals_) x = g(x);
  return x;
}

ReadTokens read_tokens(const Model& model, const Matrix& x,
                       std::optional<double> error_bound) {
  const ModelConfig& c = model.config;
  const OuterModules outer = outer_modules(c);
  require(!outer.types && !outer.embedding_norm,
          "read_tokens: a {} model embeds more than tokens and positions",
          name_of(c.architecture));
  require(x.cols() == c.width && x.rows() >= 1 &&
              (!outer.positions || x.rows() <= c.positions),
          "read_tokens: [{}x{}] of a model with {} features and {} positions",
          x.rows(), x.cols(), c.width, c.positions);
  const Matrix words =
      model.parameters.rows<double>(weight_of(outer.tokens), 0, c.vocabulary);
  Matrix places = Matrix::Zero(x.rows(), x.cols());
  if (outer.positions)
    places =
        model.parameters.rows<double>(weight_of(*outer.positions), 0, x.rows());
  ReadTokens read;
  for (Index t = 0; t < x.rows(); ++t) {
    Index nearest = 0;
    double first = infinity, second = infinity;
    for (Index w = 0; w < words.rows(); ++w) {
      // as embed adds them up
      const double apart =
          (words.row(w) + places.row(t) - x.row(t)).cwiseAbs().maxCoeff();
      if (apart < first) nearest = w;
      second = std::min(second, std::max(first, apart));
      first = std::min(first, apart);
    }
    read.ids.push_back(nearest);
    read.farthest = std::max(read.farthest, first);
    const double error = well_above(error_bound.value_or(infinity));
    read.proved.push_back(first <= error && second > error);
  }
  double closest = infinity;
  for (Index a = 0; a < words.rows(); ++a)
    for (Index b = 0; b < a; ++b)
      closest = std::min(closest,
                         (words.row(a) - words.row(b)).cwiseAbs().maxCoeff());
  read.margin = closest / 2;
  return read;
}

double storage_rounding(const Matrix& y) {
  int exponent = 0;  // |y| ≤ 2^exponent
  std::frexp(y.cwiseAbs().maxCoeff(), &exponent);
  const auto held = [&](auto zero) {
    using Small = decltype(zero);
    return y.cast<Small>().template cast<double>() == y;
  };
  // half the distance of neighbours just below 2^exponent, and of the smallest
  if (held(Eigen::bfloat16(0))) return std::ldexp(1.0, exponent - 9) + 0x1p-134;
  if (held(Eigen::half(0))) return std::ldexp(1.0, exponent - 12) + 0x1p-25;
  if (held(0.0f)) return std::ldexp(1.0, exponent - 25) + 0x1p-150;
  return 0.0;
}

}  // namespace lipscope
