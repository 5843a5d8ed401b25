#include "lipscope/control/deviation.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lipscope/core/errors.h"
#include "lipscope/theory/attention_constants.h"
#include "lipscope/theory/layer_bounds.h"
#include "lipscope/theory/layer_certificates.h"
#include "lipscope/theory/mlp_bound.h"
#include "lipscope/theory/norm_layer_bound.h"

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

}  // namespace

struct Deviation::Layer {
  NormPlace place;
  NormWeights attention_norm, mlp_norm;
  AttentionConstants constants;
  MlpNorms mlp_norms;
  MapPtr<double> attention, mlp;

  explicit Layer(const LayerWeights& w)
      : place(w.norm),
        attention_norm(w.attention_norm),
        mlp_norm(w.mlp_norm),
        constants(w.attention, w.kind, Mask::causal),
        mlp_norms(lipscope::mlp_norms(w.mlp)),
        attention(layer_map<double>(w, MapName::attn, {.threads = 1})),
        mlp(std::make_unique<Mlp<double>>(w.mlp, 1)) {}
};

Deviation::Deviation(const Stack& stack) : last_norm_(stack.last_norm) {
  for (const LayerWeights& w : stack.layers) {
    require(w.mask == Mask::causal && w.plain_scores() && w.plain_form() &&
                w.mlp.gate.size() == 0,
            "deviation: the mask \"{}\" where causal is expected, or rotary "
            "positions, a gated MLP, or another form of layer",
            name_of(w.mask));
    layers_.emplace_back(w);
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
    const auto sublayer = [&](const Map<double>& f, const NormWeights& norm,
                              Vector& read, Vector& variance) {
      const auto normed = [&](const Matrix& y) {
        variance = least_variance(norm, y);
        return LayerNorm<double>(norm)(y);
      };
      const Matrix in = layer.place == NormPlace::pre ? normed(x) : x;
      read = longest(in);
      x += f(in);
      if (layer.place == NormPlace::post) x = normed(x);
    };
    sublayer(*layer.attention, layer.attention_norm, s.attended,
             s.attention_norm);
    sublayer(*layer.mlp, layer.mlp_norm, s.fed, s.mlp_norm);
    states.layers.push_back(std::move(s));
  }
  if (last_norm_) {
    states.last_norm = least_variance(*last_norm_, x);
    x = LayerNorm<double>(*last_norm_)(x);
  }
  states.last = std::move(x);
  return states;
}

std::optional<Magnitude> Deviation::gain(const StatesAlong& states, Index n,
                                         double r) const {
  require(n >= 1 && n <= states.last.rows(), "deviation: token {} of {}", n,
          states.last.rows());
  require(r > 0.0 && std::isfinite(r), "deviation: a change of {}", r);
  const Index i = n - 1;
  std::optional<Change> x = Change{1.0, 1.0};
  // f's part in the change, or nothing
  using Inside = std::function<std::optional<Change>(const Change& in)>;
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const Layer& layer = layers_[l];
    const StatesAlong::Layer& s = states.layers[l];
    const auto sublayer = [&](const NormWeights& norm, const Vector& variance,
                              const Inside& inside) -> std::optional<Change> {
      std::optional<Change> in = x;
      if (layer.place == NormPlace::pre)
        in = through_norm({norm, variance[i]}, *x, r);
      const std::optional<Change> made = in ? inside(*in) : std::nullopt;
      if (!made) return std::nullopt;
      // the states themselves are rounded
      const Change sum = (*x + *made) * (1.0 + 1e-9);
      return layer.place == NormPlace::post
                 ? through_norm({norm, variance[i]}, sum, r)
                 : sum;
    };
    x = sublayer(layer.attention_norm, s.attention_norm,
                 [&](const Change& in) -> std::optional<Change> {
                   const std::optional<double> rho = reach(in, r);
                   const auto gain =
                       rho ? layer.constants.over(
                                 n, well_above(s.attended[i] + *rho))
                           : std::nullopt;
                   if (!gain) return std::nullopt;
                   return through_attention(*gain, in, n);
                 });
    if (!x) return std::nullopt;
    x = sublayer(layer.mlp_norm, s.mlp_norm,
                 [&](const Change& in) -> std::optional<Change> {
                   const std::optional<double> rho = reach(in, r);
                   if (!rho) return std::nullopt;
                   return in * mlp_above(layer.mlp_norms,
                                         well_above(s.fed[i] + *rho));
                 });
    if (!x) return std::nullopt;
  }
  if (last_norm_) x = through_norm({*last_norm_, states.last_norm[i]}, *x, r);
  if (!x) return std::nullopt;
  return x->token;
}

std::string Deviation::name() const {
  return layers_.empty() ? "" : layers_.front().constants.name();
}

}  // namespace lipscope
