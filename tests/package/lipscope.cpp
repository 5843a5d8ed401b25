// The norm of one token's attention is that of its value map: 3 · 5.

#include <lipscope/lipscope.h>

#include <cmath>
#include <cstdio>

int main() {
  lipscope::AttentionWeights w;
  w.query = w.key = lipscope::Matrix::Identity(2, 2);
  w.value = 3 * lipscope::Matrix::Identity(2, 2);
  w.output = 5 * lipscope::Matrix::Identity(2, 2);
  const lipscope::MultiHeadAttention<float> search(w, {});
  const lipscope::MultiHeadAttention<double> witness(w, {});
  const lipscope::Matrix x = lipscope::Matrix::Ones(1, 2);
  const double norm = lipscope::measure_norm(search, witness, x).lower;
  std::printf("%.15g\n", norm);
  return std::abs(norm - 15) < 1e-12 ? 0 : 1;
}
