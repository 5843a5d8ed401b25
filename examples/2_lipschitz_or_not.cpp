// Dot-product attention has no Lipschitz constant; L2 attention has one. Three
// tokens (0, t, −t) on a line show it [Kim21].

#include <fmt/core.h>

#include "lipscope/attention/multi_head.h"
#include "lipscope/spectral/inf_norm.h"

using namespace lipscope;

int main() {
  AttentionWeights dot;
  dot.query = dot.key = dot.value = Matrix::Ones(1, 1);
  AttentionWeights l2 = dot;
  l2.key = Matrix();  // tied to the query

  fmt::print("{:>8} {:>14} {:>10}\n", "t", "dot", "l2");
  double dot_largest = 0, l2_largest = 0;
  for (double t = 0.1; t < 2e3; t *= 10) {
    const Matrix x = (Matrix(3, 1) << 0, t, -t).finished();
    const auto norm = [&](const AttentionWeights& w, Kind kind) {
      const MultiHeadAttention<double> f(w, {.kind = kind});
      return inf_norm(*f.linearize(x)).value;
    };
    const double a = norm(dot, Kind::dot), b = norm(l2, Kind::l2);
    fmt::print("{:>8.4g} {:>14.6g} {:>10.6g}\n", t, a, b);
    dot_largest = std::max(dot_largest, a);
    l2_largest = std::max(l2_largest, b);
  }
  // 2t²/3 + 1/3 has no bound; 4p + 1 = 2.8522 bounds the other for ever
  return dot_largest > 1e5 && l2_largest < 2.8522 ? 0 : 1;
}
