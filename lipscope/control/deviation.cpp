#include "lipscope/control/deviation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "lipscope/core/errors.h"
#include "lipscope/theory/attention_constants.h"
#include "lipscope/theory/layer_bounds.h"
#include "lipscope/theory/layer_certificates.h"
#include "lipscope/theory/mlp_bound.h"
#include "lipscope/theory/norm_layer_bound.h"
#include "lipscope/theory/position_heads_bound.h"

namespace lipscope {
namespace {

// of a state, in both norms, where the input is changed by at most one
struct Change {
  Magnitude two, token;

  Change operator*(Magnitude c) const { return {two * c, token * c}; }
  Change operator+(const Change& o) const {
    return {two + o.two, token + o.token};
  }
};

// how far a token is from where it was when the input is changed by r; nothing
// where that is no number to go on with
std::optional<double> reach(const Change& change, double r) {
  const double far = (change.token * r).value();
  return far < 1e100 ? std::optional(far) : std::nullopt;
}

Change through_attention(const AttentionGain& a, const Change& in, Index n) {
  const Magnitude two = a.two * in.two;
  const Magnitude token =
      smaller(two, smaller(a.token * in.token, a.row * in.two));
  return {smaller(two, root(static_cast<double>(n)) * token), token};
}

// where a norm stands and what it sees
struct NormAt {
  const NormWeights& norm;
  double variance;  // from below
};

bool is_there(const NormWeights& norm) { return norm.gain.size() > 0; }

std::optional<Change> through_norm(const NormAt& at, const Change& in,
                                   double r) {
  const std::optional<double> rho = reach(in, r);
  if (!rho) return std::nullopt;
  const double root_d = std::sqrt(static_cast<double>(at.norm.gain.size()));
  const double sigma = std::max(0.0, std::sqrt(at.variance) * (1.0 - 0x1p-40) -
                                         well_above(*rho / root_d));
  // σ is good to a few units of √variance, and so is its square
  return in * norm_layer_local(at.norm, sigma * sigma * (1.0 - 0x1p-40));
}

Vector running_max(Vector v) {
  for (Index i = 1; i < v.size(); ++i) v[i] = std::max(v[i], v[i - 1]);
  return v;
}

Vector longest(const Matrix& x) {
  return running_max(x.rowwise().norm() * (1.0 + 1e-9));
}

Vector least_variance(const NormWeights& norm, const Matrix& x) {
  Vector negative(x.rows());
  for (Index i = 0; i < x.rows(); ++i)
    negative[i] = -variance_below(norm, x.row(i));
  return -running_max(std::move(negative));
}

// a residual branch: f with the norms ahead of it and behind it
struct Branch {
  const char* name;  // of f in a list of parts
  NormPlace place;
  NormWeights norm, output_norm;
  double scale;
  MapPtr<double> f;
};

// what is seen along a branch
struct Along {
  Vector &read, &norm, &output_norm;
};

Matrix normed(const NormWeights& norm, const Matrix& x, Vector& variance) {
  variance = least_variance(norm, x);
  return LayerNorm<double>(norm)(x);
}

Matrix through(const Branch& branch, const Matrix& x, Along seen) {
  const Matrix in =
      branch.place == NormPlace::pre ? normed(branch.norm, x, seen.norm) : x;
  seen.read = longest(in);
  Matrix out = (*branch.f)(in);
  if (is_there(branch.output_norm))
    out = normed(branch.output_norm, out, seen.output_norm);
  return branch.scale * out;
}

// Of position heads beside heads that compare, where `apart` says whether the
// two write different coordinates: then squares add up.
AttentionGain together(const AttentionGain& a, const AttentionGain& b,
                       bool apart) {
  const auto both = [&](Magnitude x, Magnitude y) {
    return apart ? root(x * x + y * y) : x + y;
  };
  return {both(a.two, b.two), both(a.token, b.token), both(a.row, b.row)};
}

// a token of what position heads write is no longer than all of it
AttentionGain gain_of(const PositionHeads& heads) {
  const Magnitude two = position_heads_lipschitz(heads, Norm::two);
  return {two, position_heads_lipschitz(heads, Norm::token), two};
}

}  // namespace

struct Deviation::Layer {
  Branch attention, mlp;
  bool parallel;
  double carry;
  std::optional<AttentionGain> positions;       // of position heads
  std::optional<AttentionConstants> constants;  // of heads that compare
  bool apart = false;  // these write coordinates that position heads leave
  MlpNorms mlp_norms;

  explicit Layer(const LayerWeights& w)
      : attention{.name = "attention",
                  .place = w.attention_norm_place(),
                  .norm = w.attention_norm,
                  .output_norm = w.attention_output_norm,
                  .scale = w.residual_scale,
                  .f = layer_map<double>(w, MapName::attn, {.threads = 1})},
        mlp{.name = "mlp",
            .place = w.norm,
            .norm = w.mlp_norm,
            .output_norm = w.mlp_output_norm,
            .scale = w.residual_scale,
            .f = std::make_unique<Mlp<double>>(w.mlp, 1)},
        parallel(w.parallel),
        carry(w.carry),
        mlp_norms(lipscope::mlp_norms(w.mlp)) {
    if (w.attention.heads > 0)
      constants.emplace(attention_of(w, w.kind), w.kind, w.mask,
                        ScoreForm{.rope = w.rope.has_value(),
                                  .query_key_norm = w.query_key_norm,
                                  .relative_bias = w.relative_bias});
    if (!w.position_heads) return;
    positions = gain_of(*w.position_heads);
    apart =
        constants && w.attention.output_bias.size() == 0 &&
        w.attention.output.leftCols(w.position_heads->value.cols()).isZero(0.0);
  }

  // over n tokens of norm at most `radius`; nothing where nothing is proved
  std::optional<AttentionGain> over(Index n, double radius) const {
    if (!constants) return positions;
    const std::optional<AttentionGain> gain = constants->over(n, radius);
    if (!gain || !positions) return gain;
    return together(*positions, *gain, apart);
  }

  std::string why_nothing() const {
    return constants ? constants->why_nothing() : "";
  }

  std::string name() const {
    if (!constants) return "position_heads";
    return (positions ? "position_heads and " : "") + constants->name();
  }
};

Deviation::Deviation(const Stack& stack)
    : last_norm_(stack.last_norm), transform_(stack.transform) {
  if (transform_) transform_norms_ = mlp_norms(transform_->dense);
  Index number = 0;
  for (const LayerWeights& w : stack.layers) {
    causal_ = causal_ && w.mask.hides_later;
    layers_.emplace_back(w);
    const std::string why = layers_.back().why_nothing();
    if (unbounded_.empty() && !why.empty())
      unbounded_ = fmt::format("layer {}, attention: {}", number, why);
    ++number;
  }
}
Deviation::~Deviation() = default;
Deviation::Deviation(Deviation&&) noexcept = default;

StatesAlong Deviation::at(const Matrix& input) const {
  require(input.rows() > 0 && input.allFinite(),
          "deviation: the input is empty or not finite");
  StatesAlong states;
  Matrix x = input;
  for (const Layer& layer : layers_) {
    StatesAlong::Layer s;
    // x + f(norm x), norm(x + f(x)) or x + f(x), and what is seen on the way
    const Matrix mixed =
        through(layer.attention, x,
                {s.attended, s.attention_norm, s.attention_output_norm});
    const Along fed{s.fed, s.mlp_norm, s.mlp_output_norm};
    if (layer.parallel) {
      x = (layer.carry * x + mixed + through(layer.mlp, x, fed)).eval();
    } else {
      x = (layer.carry * x + mixed).eval();
      if (layer.attention.place == NormPlace::post)
        x = normed(layer.attention.norm, x, s.attention_norm);
      x = (layer.carry * x + through(layer.mlp, x, fed)).eval();
      if (layer.mlp.place == NormPlace::post)
        x = normed(layer.mlp.norm, x, s.mlp_norm);
    }
    states.layers.push_back(std::move(s));
  }
  if (last_norm_) x = normed(*last_norm_, x, states.last_norm);
  if (transform_) {
    states.transform_fed = longest(x);
    x = normed(transform_->norm, Mlp<double>(transform_->dense, 1)(x),
               states.transform_norm);
  }
  states.last = std::move(x);
  return states;
}

std::optional<Magnitude> Deviation::gain(const StatesAlong& states, Index n,
                                         double r) const {
  return follow(states, n, r, nullptr);
}

std::vector<PartGain> Deviation::parts(const StatesAlong& states, Index n,
                                       double r) const {
  std::vector<PartGain> found;
  follow(states, n, r, &found);
  return found;
}

std::optional<Magnitude> Deviation::follow(const StatesAlong& states, Index n,
                                           double r,
                                           std::vector<PartGain>* parts) const {
  require(
      n >= 1 && n <= states.last.rows() && (causal_ || n == states.last.rows()),
      "deviation: token {} of {}", n, states.last.rows());
  require(r > 0.0 && std::isfinite(r), "deviation: a change of {}", r);
  if (!unbounded_.empty()) return std::nullopt;
  const Index i = n - 1;
  Index number = 0;
  const auto note = [&](const std::string& part, const Change& in,
                        const std::optional<Change>& out) {
    if (parts && out)
      parts->push_back({number, part, out->token.log10() - in.token.log10()});
    return out;
  };
  const auto norm = [&](const std::string& part, const NormWeights& weights,
                        double variance, const Change& in) {
    return note(part, in, through_norm({weights, variance}, in, r));
  };
  // f's part in the change, or nothing
  using Inside = std::function<std::optional<Change>(const Change& in)>;
  const auto branch = [&](const Branch& b, const Change& x, const Along& seen,
                          const Inside& inside) -> std::optional<Change> {
    const std::string name = b.name;
    std::optional<Change> change = x;
    if (b.place == NormPlace::pre)
      change = norm(name + "_norm", b.norm, seen.norm[i], x);
    if (change) change = note(name, *change, inside(*change));
    if (change && is_there(b.output_norm))
      change = norm(name + "_output_norm", b.output_norm, seen.output_norm[i],
                    *change);
    if (!change || b.scale == 1.0) return change;
    return *change * b.scale;
  };
  const auto fed = [&](const MlpNorms& norms, double longest,
                       const Change& in) -> std::optional<Change> {
    const std::optional<double> rho = reach(in, r);
    if (!rho) return std::nullopt;
    return in * mlp_above(norms, well_above(longest + *rho));
  };
  constexpr double rounded = 1.0 + 1e-9;  // the states themselves are

  Change x{1.0, 1.0};
  for (const Layer& layer : layers_) {
    StatesAlong::Layer s = states.layers[static_cast<std::size_t>(number)];
    const std::optional<Change> mixed =
        branch(layer.attention, x,
               {s.attended, s.attention_norm, s.attention_output_norm},
               [&](const Change& in) -> std::optional<Change> {
                 const std::optional<double> rho = reach(in, r);
                 const auto gain =
                     rho ? layer.over(n, well_above(s.attended[i] + *rho))
                         : std::nullopt;
                 if (!gain) return std::nullopt;
                 return through_attention(*gain, in, n);
               });
    if (!mixed) return std::nullopt;
    const Along along{s.fed, s.mlp_norm, s.mlp_output_norm};
    const Inside mlp = [&](const Change& in) {
      return fed(layer.mlp_norms, s.fed[i], in);
    };
    if (layer.parallel) {
      const std::optional<Change> made = branch(layer.mlp, x, along, mlp);
      if (!made) return std::nullopt;
      x = (x * layer.carry + *mixed + *made) * rounded;
    } else {
      const auto summed = [&](const Branch& b, const Vector& variance,
                              const Change& made) -> std::optional<Change> {
        const Change sum = (x * layer.carry + made) * rounded;
        if (b.place != NormPlace::post) return sum;
        return norm(std::string(b.name) + "_norm", b.norm, variance[i], sum);
      };
      std::optional<Change> next =
          summed(layer.attention, s.attention_norm, *mixed);
      if (!next) return std::nullopt;
      x = *next;
      const std::optional<Change> made = branch(layer.mlp, x, along, mlp);
      next = made ? summed(layer.mlp, s.mlp_norm, *made) : std::nullopt;
      if (!next) return std::nullopt;
      x = *next;
    }
    ++number;
  }
  if (last_norm_) {
    const auto next = norm("last_norm", *last_norm_, states.last_norm[i], x);
    if (!next) return std::nullopt;
    x = *next;
  }
  if (transform_) {
    std::optional<Change> next =
        note("transform", x, fed(transform_norms_, states.transform_fed[i], x));
    if (next)
      next = norm("transform_norm", transform_->norm, states.transform_norm[i],
                  *next * rounded);
    if (!next) return std::nullopt;
    x = *next;
  }
  return x.token;
}

std::string Deviation::name() const {
  return layers_.empty() || !unbounded_.empty() ? "" : layers_.front().name();
}

}  // namespace lipscope
