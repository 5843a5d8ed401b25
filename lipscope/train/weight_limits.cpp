#include "lipscope/train/weight_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lipscope/attention/kinds.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/parallel.h"
#include "lipscope/theory/attention_constants.h"
#include "lipscope/theory/norms.h"
#include "lipscope/theory/stack_constant.h"
#include "lipscope/train/model_stack.h"
#include "lipscope/train/newhouse25_limits.h"
#include "lipscope/train/shared_constant.h"

namespace lipscope {
namespace {

// Scaling in f32 rounds each entry by a relative 2⁻²⁴, and so moves ‖W‖₂ by at
// most 2⁻²³‖W‖_F: less than this for matrices of rank up to 6000
constexpr double room_for_rounding = 1e-5;

// what the rules for singular values and the proof of norms may be above
constexpr double room_for_proof = 1e-4;

// how much longer embeddings begin where their length is not limited;
// positions, which tell less, by less
constexpr float characters_scale = 10.0f, positions_scale = 2.0f;

constexpr const char* head_name = "lm_head.weight";

bool ends_with(const std::string& name, std::string_view end) {
  return std::string_view(name).ends_with(end);
}

StackConstantOptions where(const WeightLimits& limits) {
  return {.norm = limits.norm, .radius = limits.longest_token};
}

// Of every layer, how long the tokens may be that enter it. Attention makes
// none longer, as matrices have norm 1 and squares of shares sum to 1, and the
// MLP by its biases alone; x + f(x) is up to twice as long. Not proved, it
// guides the limits of scores.
std::vector<double> radii(const LanguageModel<float>& model,
                          const VectorOf<float>& weights, double longest) {
  const LanguageModelConfig& c = model.config();
  const double share = c.join == Join::convex ? c.join_share : 1.0;
  std::vector<double> found;
  for (Index i = 0; i < c.layers; ++i) {
    found.push_back(longest);
    if (c.join == Join::add) longest *= 4.0;  // by attention and by the MLP
    for (const char* bias : {"up", "down"})
      longest += share * tensor(weights, model.layout().slot(fmt::format(
                                             "h.{}.mlp.{}.bias", i, bias)))
                             .norm();
  }
  return found;
}

// The norm that a matrix is kept at, other than those of heads that compare.
double limit_of(const Layout::Tensor& t, const LanguageModelConfig& c) {
  return ends_with(t.name, "mlp.down.weight")
             ? 1.0 / activation_slope(c.activation)
             : 1.0;
}

// The matrices of a head that compares; a tied one has its queries for keys.
struct ComparingHead {
  View<float> query, key, value;
};

ComparingHead comparing_head(const LanguageModel<float>& model,
                             VectorOf<float>& weights, Index layer, Index h) {
  const AttentionShape& shape =
      model.mixing()[static_cast<std::size_t>(layer)]->attention()->shape();
  const Index k = shape.head_width, all = shape.heads * k;
  const auto columns = [&](const char* name, Index first) {
    const Slot s =
        model.layout().slot(fmt::format("h.{}.attn.{}.weight", layer, name));
    return View<float>(weights.data() + s.offset + first + h * k, s.rows, k,
                       Eigen::OuterStride<>(s.cols));
  };
  if (kind_of(shape.kind).tied)
    return {columns("q", 0), columns("q", 0), columns("v", 0)};
  return {columns("qkv", 0), columns("qkv", all), columns("qkv", 2 * all)};
}

// How far scores can be from 0, or half of how far apart: ‖W_QW_Kᵀ‖R²/√k, where
// q and k are rotated ‖W_Q‖‖W_K‖R²/√k.
double score_size(const ComparingHead& head, bool rotary, double radius) {
  const Matrix q = head.query.cast<double>(), k = head.key.cast<double>();
  const double product = rotary ? weight_norm_above(q) * weight_norm_above(k)
                                : product_norm_above(q, k);
  return product * radius * radius / std::sqrt(static_cast<double>(q.cols()));
}

// What a head makes of a change, for each unit of ‖W_V‖; 1 where nothing is
// proved. Not proved either, as the radius is not: it guides the values.
double cost_of(const ComparingHead& head, const AttentionShape& shape,
               const std::optional<RelativeBias>& bias, double radius,
               Norm norm) {
  AttentionWeights one{.query = head.query.cast<double>(),
                       .value = head.value.cast<double>()};
  if (!kind_of(shape.kind).tied) one.key = head.key.cast<double>();
  const double value = weight_norm_above(one.value);
  const std::optional<AttentionGain> gain =
      AttentionConstants(one, shape.kind, Mask::causal,
                         {.rope = shape.rotary, .relative_bias = bias})
          .over(shape.context, radius);
  if (!gain || value == 0.0) return 1.0;
  return (norm == Norm::token ? gain->token : gain->two).value() / value;
}

// Queries and keys share what their scores may be. Values are kept at one over
// what the head costs: its constant is then about 1, as that of a position head
// is, and the shares of the heads are what each has of the layer's constant.
void limit_comparing_heads(const WeightLimits& limits,
                           const LanguageModel<float>& model,
                           VectorOf<float>& weights, SingularValues rule,
                           int threads) {
  std::vector<double> longest;
  if (limits.longest_token)
    longest = radii(model, weights, *limits.longest_token);
  const Index layers = model.config().layers;
  const AttentionShape& shape = model.mixing()[0]->attention()->shape();
  const bool tied = kind_of(shape.kind).tied;
  parallel_for(layers * shape.heads, threads, [&](Index i) {
    const Index layer = i / shape.heads, h = i % shape.heads;
    ComparingHead head = comparing_head(model, weights, layer, h);
    double radius = 1.0;
    if (longest.empty()) {
      limit_singular_values(head.query, {rule, 1.0, 1});
      if (!tied) limit_singular_values(head.key, {rule, 1.0, 1});
    } else {
      radius = longest[static_cast<std::size_t>(layer)];
      const double size = score_size(head, shape.rotary, radius);
      if (size > limits.scores) {
        const auto factor = static_cast<float>(std::sqrt(limits.scores / size) *
                                               (1.0 - room_for_rounding));
        head.query *= factor;
        if (!tied) head.key *= factor;
      }
    }
    std::optional<RelativeBias> bias =
        model.mixing()[static_cast<std::size_t>(layer)]->exported_relative_bias(
            weights);
    if (bias) bias->table = bias->table.col(h).eval();
    const double cost = cost_of(head, shape, bias, radius, limits.norm);
    limit_singular_values(head.value, {rule, 1.0 / cost, 1});
  });
}

void limit_matrices(const WeightLimits& limits,
                    const LanguageModel<float>& model, VectorOf<float>& weights,
                    SingularValues rule, int threads) {
  const LanguageModelConfig& c = model.config();
  if (limits.matrices == MatrixLimits::newhouse25)
    return keep_newhouse25_limits(model, weights, rule, threads);
  for (const Layout::Tensor& t : model.layout().tensors())
    if (t.matrix && t.name != head_name && !of_comparing_heads(t))
      limit_singular_values(model.layout(), weights,
                            {rule, limit_of(t, c), threads},
                            [&](const Layout::Tensor& o) { return &o == &t; });
  if (compares(c.mixer))
    limit_comparing_heads(limits, model, weights, rule, threads);
}

// What the layers leave of the constant is the head's; that it is not more is
// proved.
void limit_head(const WeightLimits& limits, const LanguageModel<float>& model,
                VectorOf<float>& weights, SingularValues rule, int threads) {
  Stack layers = stack_of(model, weights);
  layers.head.resize(0, 0);
  const StackConstant found = stack_constant(layers, where(limits));
  if (!found.hidden)
    throw RunError(fmt::format("the promised constant: {}", found.unbounded));
  const double left =
      *limits.lipschitz / found.hidden->value() * (1.0 - room_for_proof);
  View<float> head = tensor(weights, model.layout().slot(head_name));
  limit_singular_values(head, {rule, left, threads});
}

// rows of a table that are longer, or all of them, are made that long
void limit_rows(View<float> table, double longest, bool all) {
  for (Index i = 0; i < table.rows(); ++i) {
    const double length = table.row(i).cast<double>().norm();
    if (length > longest || (all && length > 0))
      table.row(i) *=
          static_cast<float>(longest / length * (1.0 - room_for_rounding));
  }
}

void cap_matrices(const LanguageModel<float>& model, VectorOf<float>& weights,
                  double cap, int threads) {
  const auto& tensors = model.layout().tensors();
  parallel_for(static_cast<Index>(tensors.size()), threads, [&](Index i) {
    if (!tensors[i].matrix) return;
    View<float> w = tensor(weights, tensors[i].slot);
    const double norm = weight_norm_above(w.cast<double>());
    if (norm > cap)
      w *= static_cast<float>(cap / norm * (1.0 - room_for_rounding));
  });
}

}  // namespace

bool of_comparing_heads(const Layout::Tensor& t) {
  for (const char* end :
       {".attn.qkv.weight", ".attn.q.weight", ".attn.v.weight"})
    if (ends_with(t.name, end)) return true;
  return false;
}

std::string objection(const WeightLimits& limits,
                      const LanguageModelConfig& c) {
  const bool ruled = limits.rule != SingularValues::free;
  const auto positive = [](double x) { return x > 0.0 && std::isfinite(x); };
  if (limits.spectral && !positive(*limits.spectral))
    return fmt::format("the spectral cap is {}; it must be above 0",
                       *limits.spectral);
  if (limits.longest_token && !positive(*limits.longest_token))
    return fmt::format("the longest token is {}; it must be above 0",
                       *limits.longest_token);
  if (limits.longest_token && c.mixer != Mixer::lstm &&
      c.positions == Positions::table)
    return "the length of tokens is limited where they are characters alone; "
           "take positions rotary, relative or none";
  if (ruled && c.mixer == Mixer::lstm)
    return "rules for singular values are those of transformers; take another "
           "model than lstm";
  if (limits.matrices == MatrixLimits::newhouse25) {
    if (!ruled)
      return "newhouse25's limits of matrices are kept by a rule for singular "
             "values; take cap, soft or normalise";
    if (const std::string why = objection_to_newhouse25(c); !why.empty())
      return why;
  }
  if (!limits.lipschitz) return "";
  if (limits.norm != Norm::two && limits.norm != Norm::token)
    return "a constant is promised in the 2-norm or in the token norm";
  if (!positive(*limits.lipschitz))
    return fmt::format("the largest constant is {}; it must be above 0",
                       *limits.lipschitz);
  if (c.mixer == Mixer::contractive_l2)
    return "contractive-l2 has no promised constant in the 2-norm: its divisor "
           "undoes every scaling of its weights; take l2";
  if (c.mixer == Mixer::l2_untied || c.mixer == Mixer::lstm)
    return fmt::format(
        "{} has no promised constant: it has no bound, neither over all inputs "
        "nor over a ball; take position, l2 or dot",
        name_of(c.mixer));
  if (c.norm != NormPlace::none)
    return fmt::format(
        "LayerNorm ({}) amplifies by up to 1/sqrt(epsilon) and "
        "leaves no room for a promised constant; take norm none",
        name_of(c.norm));
  if (c.mixer == Mixer::dot && !limits.longest_token)
    return "dot-product attention has no bound over all inputs, but one over "
           "tokens of limited length; give the longest token, or take position "
           "or l2";
  if (!ruled &&
      (c.mixer != Mixer::l2 || c.heads_apart || c.join != Join::add ||
       c.positions == Positions::relative || limits.norm != Norm::two))
    return "only l2 whose heads share W_O, with residual add, without relative "
           "positions and in the 2-norm, shares a constant among its matrices; "
           "take a rule for singular values";
  if (!ruled && *limits.lipschitz <= 1.0)
    return fmt::format(
        "the largest constant is {}; residual blocks have 1 at least, so that "
        "it must be above 1",
        *limits.lipschitz);
  return "";
}

void begin_within(const WeightLimits& limits, const LanguageModel<float>& model,
                  VectorOf<float>& weights, int threads) {
  View<float> characters = tensor(weights, model.layout().slot("wte.weight"));
  if (limits.longest_token) {
    limit_rows(characters, *limits.longest_token, true);
  } else if (limits.lipschitz) {
    characters *= characters_scale;
    if (model.config().positions == Positions::table)
      tensor(weights, model.layout().slot("wpe.weight")) *= positions_scale;
  }
  if (limits.rule != SingularValues::free) {
    limit_matrices(limits, model, weights, SingularValues::normalise, threads);
    if (limits.lipschitz)
      limit_head(limits, model, weights, SingularValues::normalise, threads);
  }
  keep_within(limits, model, weights, threads);
}

void keep_within(const WeightLimits& limits, const LanguageModel<float>& model,
                 VectorOf<float>& weights, int threads) {
  if (limits.spectral) cap_matrices(model, weights, *limits.spectral, threads);
  if (limits.longest_token)
    limit_rows(tensor(weights, model.layout().slot("wte.weight")),
               *limits.longest_token, false);
  if (limits.rule != SingularValues::free) {
    limit_matrices(limits, model, weights, limits.rule, threads);
    if (limits.lipschitz)
      limit_head(limits, model, weights, limits.rule, threads);
  } else if (limits.lipschitz) {
    share_constant(model, weights, *limits.lipschitz, threads);
  }
}

std::optional<PromisedConstant> require_within(
    const WeightLimits& limits, const LanguageModel<float>& model,
    const VectorOf<float>& weights) {
  if (limits.spectral)
    for (const Layout::Tensor& t : model.layout().tensors()) {
      if (!t.matrix) continue;
      const double norm =
          weight_norm_above(tensor(weights, t.slot).cast<double>());
      if (norm > *limits.spectral)
        throw RunError(fmt::format("{}: its norm is {}, above the cap of {}",
                                   t.name, norm, *limits.spectral));
    }
  const auto longest = [&](const char* table) {
    return longest_row(
        tensor(weights, model.layout().slot(table)).cast<double>());
  };
  double longest_token = longest("wte.weight");
  if (model.config().mixer != Mixer::lstm &&
      model.config().positions == Positions::table)
    longest_token += longest("wpe.weight");
  if (limits.longest_token && longest_token > *limits.longest_token)
    throw RunError(fmt::format("wte.weight: a row is {} long, above {}",
                               longest_token, *limits.longest_token));
  if (!limits.lipschitz) return {};
  const Stack stack = stack_of(model, weights);
  const StackConstant found = stack_constant(stack, where(limits));
  if (!found.logits || found.logits->value() > *limits.lipschitz)
    throw RunError(
        fmt::format("the certified constant is {}, above the promised {}",
                    found.logits ? fmt::format("{}", found.logits->value())
                                 : found.unbounded,
                    *limits.lipschitz));
  PromisedConstant promised{.limit = *limits.lipschitz,
                            .certified = found.logits->value(),
                            .norm = limits.norm,
                            .scope = found.scope,
                            .longest_token = longest_token,
                            .width = stack.head.rows(),
                            .characters = stack.head.cols()};
  StackConstantOptions other = where(limits);
  other.norm = limits.norm == Norm::two ? Norm::token : Norm::two;
  if (const StackConstant o = stack_constant(stack, other); o.logits)
    promised.in_other_norm = o.logits->value();
  return promised;
}

}  // namespace lipscope
