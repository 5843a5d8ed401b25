#include "lipscope/train/muon.h"

#include <algorithm>
#include <cmath>

#include "lipscope/core/errors.h"
#include "lipscope/train/matrix_blocks.h"

namespace lipscope {
namespace {

// d/‖d‖_F, and its singular values brought near 1
MatrixOf<float> orthogonalised(const MatrixOf<float>& d, int steps,
                               const Products& how) {
  constexpr float a = 3.4445f, b = -4.7750f, c = 2.0315f;
  const double norm = std::sqrt(d.cast<double>().squaredNorm());
  if (norm == 0.0) return d;
  MatrixOf<float> x = (d.cast<double>() / norm).cast<float>();
  for (int i = 0; i < steps; ++i) {
    const MatrixOf<float> gram = smaller_gram(x, how);
    MatrixOf<float> polynomial = square_product(gram, gram, how);
    polynomial = b * gram + c * polynomial;
    polynomial.diagonal().array() += a;
    x = times_gram(x, polynomial, how);
  }
  return x;
}

double scale_of(MuonOptions::Scale scale, Index in, Index out) {
  return scale == MuonOptions::Scale::one
             ? 1.0
             : std::sqrt(std::max(
                   1.0, static_cast<double>(out) / static_cast<double>(in)));
}

}  // namespace

bool moved_by_muon(const Layout::Tensor& tensor, const MuonOptions& options) {
  return tensor.matrix &&
         std::find(options.by_adamw.begin(), options.by_adamw.end(),
                   tensor.name) == options.by_adamw.end();
}

void require_valid(const MuonOptions& o, const Layout& layout) {
  require(o.rate > 0 && o.momentum >= 0 && o.momentum < 1 && o.steps >= 1 &&
              o.weight_decay >= 0,
          "muon: rate {}, momentum {}, {} steps of Newton and Schulz, weight "
          "decay {}",
          o.rate, o.momentum, o.steps, o.weight_decay);
  for (const std::string& name : o.by_adamw)
    require(std::any_of(layout.tensors().begin(), layout.tensors().end(),
                        [&](const Layout::Tensor& t) {
                          return t.matrix && t.name == name;
                        }),
            "muon: {} is to be moved by AdamW, but no matrix is called so",
            name);
}

void muon_step(const Layout& layout, VectorOf<float>& weights,
               const VectorOf<float>& gradients, VectorOf<float>& momentum,
               const MuonStep& step, const MuonOptions& o) {
  require(weights.size() == layout.size() &&
              gradients.size() == layout.size() &&
              momentum.size() == layout.size(),
          "muon: buffers of {}, {} and {} numbers for a layout of {}",
          weights.size(), gradients.size(), momentum.size(), layout.size());
  const float beta = static_cast<float>(o.momentum);
  const float clip = static_cast<float>(step.scale);
  const float keep = static_cast<float>(1 - step.rate * o.weight_decay);
  const auto move = [&](const MatrixBlock& at, int threads) {
    const ConstView<float> g = block(gradients, *at.tensor, at.number);
    View<float> m = block(momentum, *at.tensor, at.number);
    View<float> w = block(weights, *at.tensor, at.number);
    m = beta * m + clip * g;
    MatrixOf<float> direction = m;
    if (o.nesterov) direction = clip * g + beta * m;
    const MatrixOf<float> x =
        orthogonalised(direction, o.steps, {threads, o.products});
    double length = step.rate * scale_of(o.scale, w.rows(), w.cols());
    if (step.by_size && step.by_size(*at.tensor))
      length *= std::sqrt(w.cast<double>().squaredNorm() /
                          static_cast<double>(std::min(w.rows(), w.cols())));
    w = keep * w - static_cast<float>(length) * x;
  };
  for_matrices(
      matrix_blocks(
          layout, [&](const Layout::Tensor& t) { return moved_by_muon(t, o); }),
      o.threads, move);
}

}  // namespace lipscope
