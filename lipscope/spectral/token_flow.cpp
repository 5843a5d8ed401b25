#include "lipscope/spectral/token_flow.h"

#include "lipscope/core/errors.h"

namespace lipscope {

std::vector<Matrix> token_flows(const LinearOperator<double>& j,
                                const std::vector<Measurement>& found,
                                Index n) {
  const auto count = static_cast<Index>(found.size());
  require(n > 0 && count > 0 && j.cols() % (count * n) == 0 &&
              j.rows() % (count * n) == 0,
          "token_flows: an operator of {}x{}, {} sequences of {} tokens",
          j.rows(), j.cols(), count, n);
  const Index width = j.cols() / (count * n), wide = j.rows() / (count * n);
  std::vector<Matrix> flows;
  for (const Measurement& m : found) {
    require(m.direction.size() == n * width && m.image.size() == n * wide,
            "token_flows: a direction of {} numbers and an image of {}, {} "
            "tokens of {} and {} features",
            m.direction.size(), m.image.size(), n, width, wide);
    const bool is_zero = m.image.squaredNorm() == 0.0;
    flows.push_back(is_zero ? Matrix() : Matrix(n, n));
  }

  for (Index t = 0; t < n; ++t) {
    // the part of every direction at token t
    Vector part = Vector::Zero(j.cols());
    for (Index b = 0; b < count; ++b)
      part.segment((b * n + t) * width, width) =
          found[b].direction.segment(t * width, width);
    const Vector out = j.apply(part);
    for (Index b = 0; b < count; ++b) {
      if (flows[b].size() == 0) continue;
      const Vector& image = found[b].image;
      for (Index i = 0; i < n; ++i)
        flows[b](i, t) = out.segment((b * n + i) * wide, wide)
                             .dot(image.segment(i * wide, wide)) /
                         image.squaredNorm();
    }
  }
  return flows;
}

}  // namespace lipscope
