#pragma once

#include <cstdint>
#include <memory>

#include "lipscope/core/matrix.h"

namespace lipscope {

/// A factor of a product, as it stands or transposed.
template <class Real>
struct Factor {
  ConstView<Real> matrix;
  bool transposed = false;

  Index rows() const { return transposed ? matrix.cols() : matrix.rows(); }
  Index cols() const { return transposed ? matrix.rows() : matrix.cols(); }
};

template <class Real>
Factor<Real> as_is(ConstView<Real> m) {
  return {m, false};
}
template <class Real>
Factor<Real> as_is(const MatrixOf<Real>& m) {
  return {view(m), false};
}
template <class Real>
Factor<Real> transposed(ConstView<Real> m) {
  return {m, true};
}
template <class Real>
Factor<Real> transposed(const MatrixOf<Real>& m) {
  return {view(m), true};
}

/// How much of floats a product reads. Sums are f32 in both cases, and doubles
/// are always read whole.
enum class Precision {
  full,  ///< all 24 bits
  high   ///< at least the leading 16, where the CPU is faster for it: a product
        ///< is then off by some 2⁻¹³ of it at worst (core/bf16_tiles.h). What
        ///< learns by noisy gradients does not feel it
};

/// C ← A B, or C ← C + A B, on the calling thread alone: through Eigen for
/// double; for float through oneDNN, or by bf16 tiles where the CPU has them
/// and the product is large enough to gain. C must not overlap A or B.
enum class Into { overwrite, add };
template <class Real>
void gemm(Factor<Real> a, Factor<Real> b, View<Real> c,
          Into into = Into::overwrite, Precision precision = Precision::full);

/// A right factor that many products share, made ready once: cut into tiles
/// where the CPU has them. It reads what it was made from no later than then,
/// or for as long as it lives: keep that as it is.
template <class Real>
class RightFactor {
 public:
  RightFactor() = default;
  explicit RightFactor(Factor<Real> b, Precision precision = Precision::full);

  Factor<Real> factor() const {
    return {{data_, rows_, cols_, Eigen::OuterStride<>(stride_)}, transposed_};
  }
  /// The tiles, or nothing.
  const std::uint16_t* tiles() const { return tiles_.get(); }
  Precision precision() const { return precision_; }

 private:
  struct Free {
    void operator()(std::uint16_t* p) const;
  };
  const Real* data_ = nullptr;  // what it was made from
  Index rows_ = 0, cols_ = 0, stride_ = 0;
  bool transposed_ = false;
  Precision precision_ = Precision::full;
  std::unique_ptr<std::uint16_t, Free> tiles_;
};

/// C ← A B, or C ← C + A B, as above.
template <class Real>
void gemm(Factor<Real> a, const RightFactor<Real>& b, View<Real> c,
          Into into = Into::overwrite);

/// A B in fixed tiles, as below.
template <class Real>
MatrixOf<Real> product(Factor<Real> a, const RightFactor<Real>& b, int threads);
template <class Real>
void product_into(Factor<Real> a, const RightFactor<Real>& b, View<Real> c,
                  int threads);

/// A B in tiles of a fixed size, each made by one thread: the same bits for any
/// number of threads.
template <class Real>
MatrixOf<Real> product(Factor<Real> a, Factor<Real> b, int threads);

/// The same, written into C (overwriting it).
template <class Real>
void product_into(Factor<Real> a, Factor<Real> b, View<Real> c, int threads,
                  Precision precision = Precision::full);

}  // namespace lipscope
