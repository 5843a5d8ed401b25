// The norm of one token's attention is that of its value map: 3 · 5. Beside the
// engine, a string is cut by the expressions of a tokenizer and hashed.

#include <lipscope/attention/multi_head.h>
#include <lipscope/io/sha256.h>
#include <lipscope/spectral/estimate.h>
#include <lipscope/text/gpt2_words.h>

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
  const bool cut = lipscope::gpt2_words("two words").size() == 2;
  const bool hashed = lipscope::sha256_text("abc").substr(0, 8) == "ba7816bf";
  return std::abs(norm - 15) < 1e-12 && cut && hashed ? 0 : 1;
}
