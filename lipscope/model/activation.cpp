#include "lipscope/model/activation.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>

#include "lipscope/core/parallel.h"

namespace lipscope {
namespace {

template <class Real>
using Numbers = Eigen::Array<Real, Eigen::Dynamic, 1>;

template <class Real>
struct Piece {
  Numbers<Real> value, slope;
};

// Φ(x), given e^{−x²/2}
Numbers<double> normal_distribution(const Numbers<double>& x,
                                    const Numbers<double>&) {
  return x.unaryExpr(
      [](double t) { return 0.5 * std::erfc(-t / std::numbers::sqrt2); });
}

// With arrays alone, so that it vectorises [AbramowitzStegun64, 7.1.26]:
// erfc(z) ≈ (a₁t + … + a₅t⁵) e^{−z²}, t = 1/(1 + pz), z = |x|/√2, to 1.5e-7
Numbers<float> normal_distribution(const Numbers<float>& x,
                                   const Numbers<float>& e) {
  const float p = static_cast<float>(0.3275911 / std::numbers::sqrt2);
  const Numbers<float> t = 1 / (1 + p * x.abs());
  const Numbers<float> tail =
      0.5f * e * t *
      (0.254829592f +
       t * (-0.284496736f +
            t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
  return (x < 0).select(tail, 1 - tail);
}

template <class Real>
Piece<Real> gelu(const Numbers<Real>& x) {
  const Numbers<Real> e = (x.square() / -2).exp();
  const Numbers<Real> below = normal_distribution(x, e);
  // d(xΦ) = Φ + xφ, φ(x) = e^{−x²/2}/√(2π)
  const Real c = static_cast<Real>(std::sqrt(std::numbers::inv_pi / 2));
  return {x * below, below + c * x * e};
}

// (1 + tanh u)/2 is the logistic function of 2u. With e = exp(−2|u|) its
// derivative e/(1 + e)² keeps its digits where 1 − tanh² has none left.
template <class Real>
Piece<Real> gelu_tanh(const Numbers<Real>& x) {
  const Real c = static_cast<Real>(std::sqrt(2 * std::numbers::inv_pi));
  const Real cubic = static_cast<Real>(0.044715);
  const Numbers<Real> u = c * x * (1 + cubic * x.square());
  const Numbers<Real> e = (-2 * u.abs()).exp();
  const Numbers<Real> s = (u < 0).select(e, Real{1}) / (1 + e);
  return {x * s,
          s + 2 * x * e / (1 + e).square() * c * (1 + 3 * cubic * x.square())};
}

template <class Real>
Piece<Real> relu(const Numbers<Real>& x) {
  return {x.max(Real{0}), (x > 0).template cast<Real>()};
}

template <class Real>
Piece<Real> silu(const Numbers<Real>& x) {
  const Numbers<Real> s = 1 / (1 + (-x).exp());
  return {x * s, s * (1 + x * (1 - s))};
}

template <class Real>
Piece<Real> evaluate(Activation activation, const Numbers<Real>& x) {
  switch (activation) {
    case Activation::gelu:
      return gelu(x);
    case Activation::gelu_tanh:
      return gelu_tanh(x);
    case Activation::relu:
      return relu(x);
    case Activation::silu:
      return silu(x);
    case Activation::max_min:
      break;
  }
  throw std::invalid_argument("activate: no such activation");
}

// entries that stay in cache with their temporaries
constexpr Index piece = 2048;

// These entries, and zeros up to a multiple of 16. Eigen's functions differ in
// their last bits between whole packets and what is left over, and what is left
// over depends on the number of entries: there must be nothing left.
template <class Real>
Numbers<Real> padded(const Real* entries, Index count) {
  Numbers<Real> whole((count + 15) / 16 * 16);
  whole.head(count) = Eigen::Map<const Numbers<Real>>(entries, count);
  whole.tail(whole.size() - count).setZero();
  return whole;
}

// x ↦ f(x), piece by piece
template <class Real, class F>
void for_each_piece(MatrixOf<Real>& x, int threads, const F& f) {
  const Index pieces = (x.size() + piece - 1) / piece;
  parallel_for(pieces, pieces < 16 ? 1 : threads, [&](Index i) {
    const Index begin = i * piece, count = std::min(piece, x.size() - begin);
    Eigen::Map<Numbers<Real>>(x.data() + begin, count) =
        f(padded(x.data() + begin, count)).head(count);
  });
}

}  // namespace

std::string name_of(Activation activation) {
  switch (activation) {
    case Activation::gelu:
      return "gelu";
    case Activation::gelu_tanh:
      return "gelu_new";
    case Activation::relu:
      return "relu";
    case Activation::silu:
      return "silu";
    case Activation::max_min:
      return "max_min";
  }
  throw std::invalid_argument("name_of: no such activation");
}

double activation_slope(Activation activation) {
  switch (activation) {
    case Activation::relu:
    case Activation::max_min:
      return 1.0;
    case Activation::gelu:
    case Activation::gelu_tanh:
      // at √2: Φ(√2) + √2 φ(√2) = 1.12890415…; its tanh approximation reaches
      // 1.12899307…: both are below
      return 1.1290;
    case Activation::silu:
      // at x with x tanh(x/2) = 2: 1.09983932…
      return 1.0999;
  }
  throw std::invalid_argument("activation_slope: no such activation");
}

template <class Real>
MatrixOf<Real> activation_values(Activation activation, MatrixOf<Real> x,
                                 int threads) {
  for_each_piece<Real>(x, threads, [&](const Numbers<Real>& entries) {
    return evaluate(activation, entries).value;
  });
  return x;
}

template <class Real>
MatrixOf<Real> activation_slopes(Activation activation, MatrixOf<Real> x,
                                 int threads) {
  for_each_piece<Real>(x, threads, [&](const Numbers<Real>& entries) {
    return evaluate(activation, entries).slope;
  });
  return x;
}

template <class Real>
void activate_with_slopes(Activation activation, std::span<Real> x,
                          std::span<Real> slopes) {
  const Index size = static_cast<Index>(x.size());
  for (Index begin = 0; begin < size; begin += piece) {
    const Index count = std::min(piece, size - begin);
    const Piece<Real> both =
        evaluate<Real>(activation, padded<Real>(x.data() + begin, count));
    Eigen::Map<Numbers<Real>>(x.data() + begin, count) = both.value.head(count);
    Eigen::Map<Numbers<Real>>(slopes.data() + begin, count) =
        both.slope.head(count);
  }
}

template void activate_with_slopes(Activation, std::span<float>,
                                   std::span<float>);
template void activate_with_slopes(Activation, std::span<double>,
                                   std::span<double>);
template MatrixOf<float> activation_values(Activation, MatrixOf<float>, int);
template MatrixOf<double> activation_values(Activation, MatrixOf<double>, int);
template MatrixOf<float> activation_slopes(Activation, MatrixOf<float>, int);
template MatrixOf<double> activation_slopes(Activation, MatrixOf<double>, int);

}  // namespace lipscope
