#include "lipscope/theory/bounds.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "lipscope/attention/kinds.h"
#include "lipscope/core/errors.h"
#include "lipscope/theory/castin24.h"
#include "lipscope/theory/column_sums.h"
#include "lipscope/theory/cosine_column_sums.h"
#include "lipscope/theory/kim21.h"
#include "lipscope/theory/l2_coordinates.h"
#include "lipscope/theory/l2_diagonal_apart.h"
#include "lipscope/theory/l2_kernel.h"
#include "lipscope/theory/layer_heads.h"
#include "lipscope/theory/norms.h"
#include "lipscope/theory/qi23.h"
#include "lipscope/theory/ramapuram24.h"
#include "lipscope/theory/relative_positions.h"
#include "lipscope/theory/row_sums.h"

namespace lipscope {
namespace {

InputSet inputs_of(const BoundSetting& q) {
  return q.norm ? InputSet::after_norm_layer(q.radius)
                : InputSet::ball(q.radius);
}

// of the chosen heads
std::vector<Vector> scores_behind(const BoundSetting& q) {
  std::vector<Vector> all;
  for (const Index h : q.heads)
    all.push_back(scores_behind(*q.relative_bias, h, q.n));
  return all;
}

void add_dot(const LayerHeads& layer, const BoundSetting& q,
             std::vector<Bound>& out) {
  std::vector<HeadNorms> norms;
  bool biased = false;
  for (const HeadWeights& h : layer.heads) {
    norms.push_back(head_norms(h, {q.radius, q.norm}, q.rope));
    biased = biased || norms.back().score_bias > 0.0;
  }
  using Factor = std::function<Magnitude(const HeadNorms&, std::size_t head)>;
  const auto offer_by_head = [&](const Statement& statement,
                                 const Factor& factor) {
    HeadBounds heads;
    for (std::size_t i = 0; i < norms.size(); ++i) {
      const HeadNorms& h = norms[i];
      const Magnitude at_one = factor(h, i);
      heads.alone.push_back(at_one * h.value);
      heads.projected.push_back(at_one * h.projected);
    }
    out.push_back(make_bound(statement, together(layer, heads), inputs_of(q)));
  };
  const auto offer = [&](const Statement& statement,
                         const std::function<Magnitude(const HeadNorms&)>& f) {
    offer_by_head(statement,
                  [&](const HeadNorms& h, std::size_t) { return f(h); });
  };

  if (!biased && !q.rope)
    offer(castin24_ball_statement, [&](const HeadNorms& h) {
      return castin24_ball(h.score, q.radius, q.n);
    });
  if (!biased && !q.rope && !q.relative_bias && q.mask == Mask::none)
    offer(castin24_meanfield_statement, [&](const HeadNorms& h) {
      return castin24_meanfield(h.score, q.radius);
    });
  if (q.relative_bias) {
    const std::vector<Vector> behind = scores_behind(q);
    if (q.mask == Mask::causal)
      offer_by_head(relative_column_sums_statement,
                    [&](const HeadNorms& h, std::size_t i) {
                      return relative_column_sums(h.sizes, behind[i]);
                    });
  } else if (q.mask != Mask::none && q.mask != Mask::causal) {
    // a window or padding: positions that measures do not have
    offer(column_sums_masked_statement, [&](const HeadNorms& h) {
      return column_sums_masked(h.sizes, q.n, q.mask);
    });
  } else if (q.mask == Mask::none) {
    offer(column_sums_statement,
          [&](const HeadNorms& h) { return column_sums(h.sizes, q.n); });
    // positions are tied to tokens by RoPE: there is no map of measures
    if (!q.rope)
      offer(column_sums_meanfield_statement,
            [&](const HeadNorms& h) { return column_sums_meanfield(h.sizes); });
  } else {
    offer(column_sums_causal_statement,
          [&](const HeadNorms& h) { return column_sums_causal(h.sizes, q.n); });
    if (!q.rope)
      offer(hardy_meanfield_statement,
            [&](const HeadNorms& h) { return hardy_meanfield(h.sizes); });
  }
  offer(row_sums_statement,
        [&](const HeadNorms& h) { return row_sums(h.sizes); });
}

// with p of each head
Bound largest_coordinate(const LayerHeads& layer,
                         const std::vector<double>& p) {
  return make_bound(l2_coordinates_statement,
                    l2_coordinates(layer.heads, p).maxCoeff(),
                    InputSet::everywhere());
}

void add_relative_l2(const LayerHeads& layer, const BoundSetting& q,
                     std::vector<Bound>& out) {
  if (q.mask != Mask::causal) return;
  const std::vector<Vector> behind = scores_behind(q);
  std::vector<Magnitude> alone, projected;
  for (HeadWeights h : layer.heads) {
    projected.push_back(l2_path_factor(l2_path_norms({h})));
    h.output.resize(0, 0);
    alone.push_back(l2_path_factor(l2_path_norms({h})));
  }
  const auto offer = [&](const Statement& statement,
                         Magnitude (*at_one)(const Vector&)) {
    HeadBounds heads;
    for (std::size_t i = 0; i < layer.heads.size(); ++i) {
      const Magnitude factor = at_one(behind[i]);
      heads.alone.push_back(factor * alone[i]);
      heads.projected.push_back(factor * projected[i]);
    }
    out.push_back(
        make_bound(statement, together(layer, heads), InputSet::everywhere()));
  };
  offer(relative_l2_token_statement, relative_l2_token);
  offer(relative_l2_two_statement, relative_l2_two);
  std::vector<double> p;
  for (const Vector& b : behind) p.push_back(relative_phi_inverse(b));
  out.push_back(largest_coordinate(layer, p));
}

void add_l2(const LayerHeads& layer, const BoundSetting& q,
            std::vector<Bound>& out) {
  if (q.relative_bias) return add_relative_l2(layer, q, out);
  std::vector<L2HeadNorms> norms;
  for (const HeadWeights& h : layer.heads) norms.push_back(l2_head_norms(h));
  const Index k = layer.heads[0].query.cols();
  // n is how many tokens one sees in p, and how many see one elsewhere
  const Index seen = most_visible(q.mask, q.n);
  const Index seers = most_seeing(q.mask, q.n);
  const double p = kim21_phi_inverse(seen);
  const Magnitude weights = kim21_weight_factor(norms) * layer.output;
  const InputSet scope = InputSet::everywhere();
  out.push_back(make_bound(
      kim21_inf_statement,
      kim21_inf(seen, k) * kim21_inf_weight_factor(norms, layer.output_inf),
      scope));
  out.push_back(
      largest_coordinate(layer, std::vector<double>(layer.heads.size(), p)));
  out.push_back(
      make_bound(kim21_two_statement, kim21_two(p, seers, k) * weights, scope));
  out.push_back(make_bound(l2_diagonal_apart_statement,
                           l2_diagonal_apart(p, seers, k) * weights, scope));
  out.push_back(
      make_bound(l2_row_sums_statement,
                 l2_row_sums(p, k) * l2_row_sums_weights(layer, norms), scope));
  // either factor serves: k^{-1/2}, and the heads one by one or side by side
  const double inverse_root = well_above(1.0 / std::sqrt(double(k)));
  out.push_back(
      make_bound(l2_kernel_statement,
                 l2_kernel(q.n, q.mask) *
                     smaller(l2_path_factor(l2_path_norms(layer.heads)),
                             weights * inverse_root),
                 scope));
}

void add_sigmoid(const LayerHeads& layer, const BoundSetting& q,
                 std::vector<Bound>& out) {
  HeadBounds heads;
  constexpr double slack = 1.0 + 0x1p-40;  // for products that round both ways
  for (const HeadWeights& h : layer.heads) {
    const double root_k = std::sqrt(static_cast<double>(h.query.cols()));
    const HeadNorms norms = head_norms(h, {q.radius, {}}, false);
    const double b_b = h.query_bias.cwiseAbs().dot(h.key_bias.cwiseAbs());
    SigmoidNorms s{.score = norms.score,
                   .query_bias = norms.score_bias,
                   .key_bias = well_above(length_above(h.query * h.key_bias) *
                                          slack / root_k),
                   .both = well_above(b_b * slack / root_k),
                   .value = norms.value,
                   .value_bias = length_above(h.value_bias)};
    heads.alone.push_back(ramapuram24_ball(s, q.radius, q.n, q.mask));
    s.value = norms.projected;
    if (layer.projected)
      s.value_bias =
          well_above(length_above(h.output.transpose() * h.value_bias) * slack);
    heads.projected.push_back(ramapuram24_ball(s, q.radius, q.n, q.mask));
  }
  out.push_back(make_bound(ramapuram24_ball_statement, together(layer, heads),
                           InputSet::ball(q.radius)));
}

void add_cosine(const LayerHeads& layer, const BoundSetting& q,
                std::vector<Bound>& out) {
  HeadBounds published, columns;
  for (const HeadWeights& h : layer.heads) {
    const CosineNorms norms{.query = weight_norm_above(h.query),
                            .key = weight_norm_above(h.key),
                            .value = weight_norm_above(h.value),
                            .tau = q.cosine.tau,
                            .nu = q.cosine.nu,
                            .epsilon = q.cosine.epsilon};
    // values are normalised before W_O: it stays outside
    const double output = layer.projected ? weight_norm_above(h.output) : 1.0;
    published.alone.push_back(qi23_cosine(norms, q.n));
    published.projected.push_back(published.alone.back() * output);
    columns.alone.push_back(cosine_column_sums(norms, q.n, q.mask));
    columns.projected.push_back(columns.alone.back() * output);
  }
  out.push_back(make_bound(qi23_cosine_statement, together(layer, published),
                           InputSet::everywhere()));
  out.push_back(make_bound(cosine_column_sums_statement,
                           together(layer, columns), InputSet::everywhere()));
}

constexpr KindBounds table[] = {
    {.kind = Kind::dot,
     .over_ball = true,
     .rope = true,
     .relative = true,
     .token = true,
     .add = add_dot},
    {.kind = Kind::l2,
     .relative = true,
     .token = true,
     .inf = true,
     .add = add_l2},
    {.kind = Kind::l2_untied},
    {.kind = Kind::cosine, .add = add_cosine},
    {.kind = Kind::sigmoid, .over_ball = true, .add = add_sigmoid}};
static_assert(std::size(table) == std::size(all_kinds));

void require_sound_setting(const AttentionWeights& weights,
                           const BoundSetting& q) {
  require_sound(weights, q.kind);
  require(q.n >= 1, "bound: a sequence of {} tokens", q.n);
  require_sound(q.mask, q.n);
  const KindBounds& kind = kind_bounds(q.kind);
  require(!q.rope || kind.rope, "bound: rope with {} attention",
          name_of(q.kind));
  require(!q.relative_bias || !kind.add || kind.relative,
          "bound: relative positions with {} attention", name_of(q.kind));
  if (q.relative_bias)
    require_addable(*q.relative_bias, weights, q.kind, q.mask);
  if (kind.over_ball)
    require(q.radius > 0.0 && std::isfinite(q.radius),
            "bound: the radius is {}, it must be above 0 and finite", q.radius);
  if (!q.norm) return;
  const Index d = weights.features();
  require(q.norm->gain.size() == d,
          "bound: the norm layer has {} features, the tokens {}",
          q.norm->gain.size(), d);
  require(q.norm->bias.size() == 0 || q.norm->bias.size() == d,
          "bound: the norm layer has a bias of {} numbers for {} features",
          q.norm->bias.size(), d);
  require(q.norm->gain.allFinite() && q.norm->bias.allFinite(),
          "bound: the norm layer is not finite");
}

}  // namespace

const KindBounds& kind_bounds(Kind kind) {
  for (const KindBounds& entry : table)
    if (entry.kind == kind) return entry;
  throw std::invalid_argument("kind_bounds: no such kind");
}

std::string why_no_bounds(Kind kind, const Mask& mask) {
  if (!kind_bounds(kind).add)
    return fmt::format("nothing is proved of {} attention", name_of(kind));
  if (kind_of(kind).lipschitz && !kind_of(kind).lipschitz_under(mask))
    return fmt::format(
        "{} attention is not Lipschitz under the mask \"{}\": padding does not "
        "see itself, and nothing holds it near what it sees",
        name_of(kind), name_of(mask));
  return "";
}

std::vector<Bound> bounds(const AttentionWeights& weights,
                          const BoundSetting& setting) {
  require_sound_setting(weights, setting);
  std::vector<Bound> out;
  if (!why_no_bounds(setting.kind, setting.mask).empty()) return out;
  BoundSetting exact = setting;
  exact.heads = chosen_heads(weights, setting.heads);
  exact.mask = at_length(setting.mask, setting.n);
  kind_bounds(setting.kind)
      .add(layer_heads(weights, setting.heads, setting.project), exact, out);
  return out;
}

std::optional<Bound> best_bound(const std::vector<Bound>& bounds, Norm norm) {
  std::optional<Bound> best;
  for (const Bound& b : bounds)
    if (speaks_of(b, norm) && (!best || b.log10 < best->log10)) best = b;
  return best;
}

}  // namespace lipscope
