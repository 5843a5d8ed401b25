#pragma once

#include <memory>
#include <string>

#include "lipscope/core/matrix.h"

namespace lipscope {

/// A factor of a product, as it stands or transposed. It borrows the numbers of
/// the matrix, which must outlive it.
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

/// How much of floats a product reads. Sums are f32 in all cases, and doubles
/// are always read whole.
enum class Precision {
  full,  ///< all 24 bits
  high,  ///< at least the leading 16, where the CPU is faster for it: a product
         ///< is then off by some 2⁻¹³ of it at worst (core/bf16_tiles.h). What
         ///< learns by noisy gradients does not feel it
  bf16  ///< at least the nearest number of 8 bits, where the CPU is faster for
        ///< it: a product is then off by some 2⁻⁷ of it at worst
        ///< (core/bf16_pairs.h)
};

inline constexpr Precision all_precisions[] = {Precision::full, Precision::high,
                                               Precision::bf16};

std::string name_of(Precision precision);  ///< "full", "high", "bf16"

/// What makes a large f32 product on this CPU.
enum class Kernel {
  panels,  ///< core/panels.h
  tiles,   ///< core/bf16_tiles.h, of one part, two or three by the precision
  pairs    ///< core/bf16_pairs.h
};

/// In words, what this CPU makes large f32 products of: "f32", "bf16 tiles, two
/// parts", "bf16 pairs", ….
std::string products_in_words(Precision precision);

/// C ← A B, or C ← C + A B, on the calling thread alone: through Eigen for
/// double; for float through oneDNN, or by bf16 tiles or pairs where the CPU
/// has them and the product is large enough to gain. C must not overlap A or B.
///
/// The bits depend on the numbers and on the shapes, not on where the matrices
/// stand in memory. They may depend on the number of rows: for products whose
/// rows belong to different sequences, use one of those below.
enum class Into { overwrite, add };
template <class Real>
void gemm(Factor<Real> a, Factor<Real> b, View<Real> c,
          Into into = Into::overwrite, Precision precision = Precision::full);

// The promise of all that follows: a row of the product depends on the same row
// of the left factor and on the right factor alone, to the last bit. It does
// not depend on how many rows there are, on the place of the row among them, on
// the number of threads, or on where the matrices stand in memory. What is
// measured for one sequence is therefore the same whichever sequences share its
// products.
//
// It holds by construction: every Kernel makes every number in an order of its
// own, and which of them makes it depends on the right factor and the precision
// alone.

/// A right factor that many products share, made ready once: cut for the kernel
/// that is fastest on this CPU. Keep what it was made from as it is for as long
/// as the factor lives: where panels would take too much memory, they are cut
/// from it at every product.
template <class Real>
class RightFactor {
 public:
  RightFactor() = default;
  explicit RightFactor(Factor<Real> b, Precision precision = Precision::full);

  Factor<Real> factor() const {
    return {{data_, rows_, cols_, Eigen::OuterStride<>(stride_)}, transposed_};
  }
  Kernel kernel() const { return kernel_; }
  /// As the kernel reads it, or nothing.
  const void* cut() const { return cut_.get(); }
  Precision precision() const { return precision_; }

 private:
  struct Free {
    void operator()(void* p) const;
  };
  const Real* data_ = nullptr;  // what it was made from
  Index rows_ = 0, cols_ = 0, stride_ = 0;
  bool transposed_ = false;
  Precision precision_ = Precision::full;
  Kernel kernel_ = Kernel::panels;
  std::unique_ptr<void, Free> cut_;
};

/// C ← A B, or C ← C + A B, on the calling thread alone.
template <class Real>
void gemm(Factor<Real> a, const RightFactor<Real>& b, View<Real> c,
          Into into = Into::overwrite);

/// A B, made piece by piece on several threads (0: all cores).
template <class Real>
MatrixOf<Real> product(Factor<Real> a, const RightFactor<Real>& b, int threads);
template <class Real>
void product_into(Factor<Real> a, const RightFactor<Real>& b, View<Real> c,
                  int threads);

/// The same, for a right factor that is cut for this product.
template <class Real>
MatrixOf<Real> product(Factor<Real> a, Factor<Real> b, int threads);
template <class Real>
void product_into(Factor<Real> a, Factor<Real> b, View<Real> c, int threads,
                  Precision precision = Precision::full);

/// While one lives, products and right factors are made as on a CPU without
/// tiles and pairs: for tests, and to compare with other machines. Make it and
/// end it while no other thread multiplies.
class WithoutTiles {
 public:
  WithoutTiles();
  ~WithoutTiles();
  WithoutTiles(const WithoutTiles&) = delete;
  WithoutTiles& operator=(const WithoutTiles&) = delete;

 private:
  bool before_;
};

}  // namespace lipscope
