#include "lipscope/train/dropout.h"

#include <cmath>

namespace lipscope {

template <class Real>
void dropout(MatrixOf<Real>& x, std::uint64_t place, const Pass& pass) {
  // sixteen random bits decide for an entry
  const auto dropped =
      static_cast<std::uint64_t>(std::lround(pass.dropout * 0x1p16));
  if (dropped == 0) return;
  const Real scale =
      static_cast<Real>(1 / (1 - static_cast<double>(dropped) * 0x1p-16));
  const Rng noise = pass.noise.split(place);
  for_row_pieces(x.rows(), pass.threads, [&](Index begin, Index count) {
    Rng rng = noise.split(static_cast<std::uint64_t>(begin));
    Real* const entries = x.data() + begin * x.cols();
    std::uint64_t bits = 0;
    for (Index i = 0; i < count * x.cols(); ++i) {
      bits = i % 4 == 0 ? rng.next() : bits >> 16;
      entries[i] *= (bits & 0xffff) < dropped ? 0 : scale;
    }
  });
}

template void dropout(MatrixOf<float>&, std::uint64_t, const Pass&);
template void dropout(MatrixOf<double>&, std::uint64_t, const Pass&);

}  // namespace lipscope
