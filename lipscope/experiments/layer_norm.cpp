#include <algorithm>
#include <cmath>

#include "lipscope/core/rng.h"
#include "lipscope/experiments/shared_steps.h"
#include "lipscope/model/layer.h"
#include "lipscope/model/model.h"
#include "lipscope/theory/bounds.h"
#include "lipscope/theory/layer_certificates.h"
#include "lipscope/theory/norm_layer_bound.h"
#include "lipscope/theory/unbounded.h"

namespace lipscope {
namespace {

enum LayerNormStream : std::uint64_t { layer_norm_weights, layer_norm_tokens };

// a head and the norm layer ahead of it
struct Normed {
  AttentionWeights weights;
  NormWeights norm;
  Mask mask = Mask::none;
  Index head = 0;
  Record question;   // what all points share
  std::string name;  // for the title
};

// the head whose family of inputs grows fastest
Index fastest(const AttentionWeights& w) {
  std::vector<double> rates;
  for (Index h = 0; h < w.heads; ++h)
    rates.push_back(unbounded_rate(head(w, h)));
  return std::max_element(rates.begin(), rates.end()) - rates.begin();
}

template <class Real>
MapPtr<Real> map_of(const Normed& s, const AttentionOptions& options,
                    bool with) {
  MapPtr<Real> attention =
      std::make_unique<MultiHeadAttention<Real>>(s.weights, options);
  if (!with) return attention;
  return compose<Real>(std::move(attention),
                       std::make_unique<LayerNorm<Real>>(s.norm));
}

// Lip of attention ∘ norm at x: that of the norm there times that of attention
// at what comes out
Bound at_input(const Normed& s, const AttentionOptions& options,
               const Matrix& x, bool with) {
  if (!with)
    return local_certificate(s.weights, options, x, Certificate::token_pairs);
  Bound inner =
      local_certificate(s.weights, options, LayerNorm<double>(s.norm)(x),
                        Certificate::token_pairs);
  const Magnitude value = Magnitude(inner.value) * norm_layer_at(s.norm, x);
  return make_bound({inner.name + " * norm", inner.norm, inner.mask, ""}, value,
                    inner.scope);
}

// the same over all inputs: attention over what comes out of the norm
std::optional<Bound> over_all(const Normed& s, const AttentionOptions& options,
                              Index n) {
  const std::optional<Bound> inner =
      best_bound(bounds(s.weights, {.mask = options.mask,
                                    .heads = options.heads,
                                    .n = n,
                                    .radius = norm_layer_radius(s.norm),
                                    .norm = s.norm}),
                 Norm::two);
  if (!inner) return std::nullopt;
  return make_bound({inner->name + " * norm", Norm::two, inner->mask, ""},
                    Magnitude(inner->value) * norm_layer_everywhere(s.norm),
                    InputSet::everywhere());
}

void sweep(const Normed& s, const ExperimentOptions& o, const Notebook& book) {
  book.open(
      {.name = "layer-norm, " + s.name,
       .title = "With and without a norm layer: " + s.name,
       .explanation =
           "One head at tokens of growing size t: Gaussian ones, and the "
           "family tu, -tu, ... with one token that looks at all alike, at "
           "which attention alone grows like t^2. With the norm layer ahead of "
           "it there is a bound over all inputs. Above: certificates at the "
           "input, and that bound.",
       .x_name = "t",
       .y_name = "2-norm of the Jacobian",
       .log_x = true,
       .log_y = true});
  const Index n = 8, d = s.weights.features();
  const AttentionOptions options{
      .mask = s.mask, .heads = {s.head}, .threads = o.threads};
  const HeadWeights worst = head(s.weights, s.head);
  const Matrix random = gaussian(n, d, Rng(o.seed).split(layer_norm_tokens)) /
                        std::sqrt(static_cast<double>(d));
  for (const double t : geometric(0.01, 1000.0, o.full ? 21 : 6))
    for (const bool family : {true, false}) {
      const Matrix x =
          family ? unbounded_witness(worst, Kind::dot, n, t) : t * random;
      for (const bool with : {false, true}) {
        const std::string series =
            fmt::format("{} norm, {}", with ? "with" : "without",
                        family ? "family" : "Gaussian");
        Record question = s.question;
        question.head = s.head;
        question.map = with ? "attn(norm)" : "attn";
        question.mask = name_of(s.mask);
        question.n = n;
        question.d = d;
        question.radius_max = x.rowwise().norm().maxCoeff();
        const auto measured = [&](Record& r) {
          set_sides(r, measure_norm(*map_of<float>(s, options, with),
                                    *map_of<double>(s, options, with), x,
                                    {.from_above = false,
                                     .seed = o.seed,
                                     .threads = o.threads}));
        };
        book.ask({series, t}, question, [&](Record& r) {
          measured(r);
          if (!r.upper) set_bound(r, at_input(s, options, x, with));
        });
        if (!with || !family) continue;
        question.scope = Scope::everywhere;
        book.ask({"with norm, over all inputs", t}, question, [&](Record& r) {
          measured(r);
          set_bound(r, over_all(s, options, n));
        });
      }
    }
}

// d = 32, two heads, no biases, a plain layer norm
Normed random_head(const ExperimentOptions& o) {
  const Index d = 32;
  const Rng rng = Rng(o.seed).split(layer_norm_weights);
  const auto matrix = [&](std::uint64_t stream) -> Matrix {
    return gaussian(d, d, rng.split(stream)) /
           std::sqrt(static_cast<double>(d));
  };
  Normed s{.weights = {.query = matrix(0),
                       .key = matrix(1),
                       .value = matrix(2),
                       .output = matrix(3),
                       .heads = 2},
           .norm = {.gain = Vector::Ones(d)},
           .question = attention_question("d=32, heads=2, gaussian"),
           .name = "random weights"};
  s.head = fastest(s.weights);
  return s;
}

}  // namespace

void layer_norm_experiment(const ExperimentOptions& o, const Notebook& book) {
  if (!o.model) {
    sweep(random_head(o), o, book);
    return;
  }
  require_plain_scores(o);
  for (const Index l : shown_layers(*o.model, o.full)) {
    const std::optional<NormWeights> norm = load_input_norm(*o.model, l);
    if (!norm) continue;
    const LayerWeights layer = load_layer(*o.model, l, MapName::attn);
    const Index h = fastest(layer.attention);
    Record question = attention_question(o.model_name);
    question.layer = l;
    sweep({.weights = layer.attention,
           .norm = *norm,
           .mask = layer.mask,
           .head = h,
           .question = question,
           .name = fmt::format("layer {} head {}", l, h)},
          o, book);
  }
}

}  // namespace lipscope
