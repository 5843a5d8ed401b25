#include "lipscope/train/adamw.h"

#include <algorithm>
#include <cmath>

#include "lipscope/core/errors.h"
#include "lipscope/core/parallel.h"

namespace lipscope {

void adamw_step(const Layout& layout, VectorOf<float>& weights,
                const VectorOf<float>& gradients, AdamMoments& moments, Index t,
                double rate, double scale, const AdamWOptions& o,
                const TensorChoice& which) {
  require(weights.size() == layout.size() &&
              gradients.size() == layout.size() &&
              moments.first.size() == layout.size() &&
              moments.second.size() == layout.size(),
          "adamw: buffers of {}, {}, {} and {} numbers for a layout of {}",
          weights.size(), gradients.size(), moments.first.size(),
          moments.second.size(), layout.size());
  const float beta1 = static_cast<float>(o.beta1);
  const float beta2 = static_cast<float>(o.beta2);
  const float epsilon = static_cast<float>(o.epsilon);
  const float first = static_cast<float>(rate / (1 - std::pow(o.beta1, t)));
  const float second = static_cast<float>(1 / (1 - std::pow(o.beta2, t)));
  for (const Layout::Tensor& tensor : layout.tensors()) {
    if (which && !which(tensor)) continue;
    const Slot slot = tensor.slot;
    const float keep =
        static_cast<float>(tensor.matrix ? 1 - rate * o.weight_decay : 1.0);
    constexpr Index piece = 4096;  // stays in cache
    parallel_for((slot.size() + piece - 1) / piece, o.threads, [&](Index i) {
      const Index at = slot.offset + i * piece;
      const Index count = std::min(piece, slot.size() - i * piece);
      auto w = weights.segment(at, count).array();
      auto m = moments.first.segment(at, count).array();
      auto v = moments.second.segment(at, count).array();
      const auto g =
          gradients.segment(at, count).array() * static_cast<float>(scale);
      m = beta1 * m + (1 - beta1) * g;
      v = beta2 * v + (1 - beta2) * g.square();
      w = keep * w - first * m / ((second * v).sqrt() + epsilon);
    });
  }
}

double gradient_norm(const VectorOf<float>& gradients, Index begin, Index size,
                     int threads) {
  constexpr Index piece = Index{1} << 16;
  Vector squares((size + piece - 1) / piece);
  parallel_for(squares.size(), threads, [&](Index i) {
    const Index at = i * piece;
    squares[i] = gradients.segment(begin + at, std::min(piece, size - at))
                     .cast<double>()
                     .squaredNorm();
  });
  return std::sqrt(squares.sum());
}

double layer_gradient_norm(const Layout& layout,
                           const VectorOf<float>& gradients, Index layer) {
  const std::string prefix = fmt::format("h.{}.", layer);
  double squares = 0.0;
  for (const Layout::Tensor& t : layout.tensors())
    if (t.name.starts_with(prefix))
      squares +=
          std::pow(gradient_norm(gradients, t.slot.offset, t.slot.size()), 2);
  return std::sqrt(squares);
}

}  // namespace lipscope
