#include "lipscope/core/panels.h"

#include <algorithm>
#include <iterator>
#include <type_traits>
#include <utility>

#include "lipscope/core/thread_scratch.h"

namespace lipscope::panels {
namespace {

// Eigen's names for the widest vectors of the CPU
template <class Real>
using Packet = typename Eigen::internal::packet_traits<Real>::type;
template <class Real>
constexpr Index lanes = Eigen::internal::unpacket_traits<Packet<Real>>::size;

// What is summed at a time: so many rows of A by three packets of B. The sums,
// a row of B and a number of A fill the registers there are.
constexpr Index most_rows =
    EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS >= 32 ? 8 : 4;
constexpr Index across = 3;
template <class Real>
constexpr Index wide = across* lanes<Real>;
// rows of A that are laid ready at a time
constexpr Index rows_ready = 128;

// `rows` rows of the product on one panel, of which so many packets hold
// columns, and one piece of the sums. `a` has the numbers of most_rows rows
// side by side, one step after another.
template <class Real, int rows, int packets>
void sum(const Real* a, const Real* b, Index deep, Real* c, Index stride,
         Index cols, bool add) {
  using Eigen::internal::padd;
  using Eigen::internal::pload;
  using Eigen::internal::ploadu;
  using Eigen::internal::pmadd;
  using Eigen::internal::pset1;
  using Eigen::internal::pstoreu;
  using P = Packet<Real>;
  P s[rows][packets];
  for (int r = 0; r < rows; ++r)
    for (int j = 0; j < packets; ++j) s[r][j] = pset1<P>(Real{0});
  for (Index q = 0; q < deep; ++q, a += most_rows, b += wide<Real>) {
    P x[packets];
    for (int j = 0; j < packets; ++j) x[j] = pload<P>(b + j * lanes<Real>);
    for (int r = 0; r < rows; ++r) {
      const P y = pset1<P>(a[r]);
      for (int j = 0; j < packets; ++j) s[r][j] = pmadd(y, x[j], s[r][j]);
    }
  }
  if (cols == packets * lanes<Real>) {
    for (int r = 0; r < rows; ++r)
      for (int j = 0; j < packets; ++j) {
        Real* to = c + r * stride + j * lanes<Real>;
        pstoreu(to, add ? padd(ploadu<P>(to), s[r][j]) : s[r][j]);
      }
    return;
  }
  alignas(64) Real line[packets * lanes<Real>];
  for (int r = 0; r < rows; ++r) {
    for (int j = 0; j < packets; ++j) pstoreu(line + j * lanes<Real>, s[r][j]);
    Real* to = c + r * stride;
    for (Index j = 0; j < cols; ++j) to[j] = add ? to[j] + line[j] : line[j];
  }
}

template <class Real>
using Sum = void (*)(const Real*, const Real*, Index, Real*, Index, Index,
                     bool);

// sum for so many rows and columns
template <class Real, int... less>
Sum<Real> sum_of(Index rows, Index cols, std::integer_sequence<int, less...>) {
  static constexpr Sum<Real> all[][most_rows] = {{sum<Real, less + 1, 1>...},
                                                 {sum<Real, less + 1, 2>...},
                                                 {sum<Real, less + 1, 3>...}};
  static_assert(std::size(all) == across);
  return all[(cols - 1) / lanes<Real>][rows - 1];
}

// Eigen's best packet for sizes that are multiples of most_rows; that it has
// just as many numbers is not so on every CPU
template <class Real>
using Finder = Eigen::internal::find_best_packet<Real, most_rows>;
template <class Real>
constexpr bool has_rows_packet =
    sizeof(typename Finder<Real>::type) == most_rows * sizeof(Real);

// most_rows rows of A, `stride` apart, side by side: to[q][r] = from[r][q]
template <class Real>
void turn(const Real* from, Index stride, Index deep, Real* to) {
  Index q = 0;
  if constexpr (has_rows_packet<Real>) {
    using P = typename Finder<Real>::type;
    for (; q + most_rows <= deep; q += most_rows) {
      Eigen::internal::PacketBlock<P, most_rows> block;
      for (Index r = 0; r < most_rows; ++r)
        block.packet[r] = Eigen::internal::ploadu<P>(from + r * stride + q);
      Eigen::internal::ptranspose(block);
      for (Index r = 0; r < most_rows; ++r)
        Eigen::internal::pstoreu(to + (q + r) * most_rows, block.packet[r]);
    }
  }
  for (; q < deep; ++q)
    for (Index r = 0; r < most_rows; ++r)
      to[q * most_rows + r] = from[r * stride + q];
}

// Rows [top, top + rows) of A and numbers [begin, begin + deep) of each:
// most_rows rows side by side, one group after another
template <class Real>
void lay_ready(const Numbers<Real>& a, Index top, Index rows, Index begin,
               Index deep, Real* to) {
  for (Index i = 0; i < rows; i += most_rows, to += deep * most_rows) {
    const Index here = std::min(most_rows, rows - i);
    if (a.transposed) {
      const Real* from = a.data + begin * a.stride + top + i;
      if (here == most_rows) {
        for (Index q = 0; q < deep; ++q)
          std::copy_n(from + q * a.stride, most_rows, to + q * most_rows);
      } else {
        for (Index q = 0; q < deep; ++q)
          for (Index r = 0; r < here; ++r)
            to[q * most_rows + r] = from[q * a.stride + r];
      }
    } else {
      const Real* from = a.data + (top + i) * a.stride + begin;
      if (here == most_rows) {
        turn(from, a.stride, deep, to);
      } else {
        for (Index r = 0; r < here; ++r)
          for (Index q = 0; q < deep; ++q)
            to[q * most_rows + r] = from[r * a.stride + q];
      }
    }
  }
}

Index pieces(Index size, Index of) { return (size + of - 1) / of; }

}  // namespace

template <class Real>
Index width() {
  return wide<Real>;
}

template <class Real>
Index packed_size(Index k, Index n) {
  return k * pieces(n, wide<Real>) * wide<Real>;
}

// piece after piece of the sums, panel after panel of a piece
template <class Real>
void pack(Numbers<Real> b, Index k, Index n, Real* to) {
  static_assert(48 % wide<Real> == 0);
  for (Index q = 0; q < k; q += piece_depth) {
    const Index deep = std::min(piece_depth, k - q);
    for (Index j = 0; j < n; j += wide<Real>) {
      const Index cols = std::min(wide<Real>, n - j);
      if (cols < wide<Real>) std::fill_n(to, deep * wide<Real>, Real{0});
      if (b.transposed) {
        for (Index i = 0; i < cols; ++i) {
          const Real* from = b.data + (j + i) * b.stride + q;
          for (Index p = 0; p < deep; ++p) to[p * wide<Real> + i] = from[p];
        }
      } else {
        for (Index p = 0; p < deep; ++p)
          std::copy_n(b.data + (q + p) * b.stride + j, cols,
                      to + p * wide<Real>);
      }
      to += deep * wide<Real>;
    }
  }
}

template <class Real>
void multiply(Numbers<Real> a, const Real* panels, Index k, Index n,
              Index first, Index cols, Real* c, Index c_stride, Index m,
              bool add) {
  Real* ready = static_cast<Real*>(thread_scratch(
      Scratch::left_panels, sizeof(Real) * rows_ready * piece_depth));
  const auto sizes = std::make_integer_sequence<int, most_rows>();
  for (Index q = 0; q < k; q += piece_depth) {
    const Index deep = std::min(piece_depth, k - q);
    const Real* b = panels + first * deep;
    for (Index top = 0; top < m; top += rows_ready) {
      const Index rows = std::min(rows_ready, m - top);
      lay_ready(a, top, rows, q, deep, ready);
      for (Index j = 0; j < cols; j += wide<Real>) {
        const Index cols_here = std::min(wide<Real>, cols - j);
        for (Index i = 0; i < rows; i += most_rows)
          sum_of<Real>(std::min(most_rows, rows - i), cols_here, sizes)(
              ready + i * deep, b + j * deep, deep,
              c + (top + i) * c_stride + j, c_stride, cols_here, add || q > 0);
      }
    }
    panels += pieces(n, wide<Real>) * wide<Real> * deep;
  }
}

template Index width<float>();
template Index width<double>();
template Index packed_size<float>(Index, Index);
template Index packed_size<double>(Index, Index);
template void pack(Numbers<float>, Index, Index, float*);
template void pack(Numbers<double>, Index, Index, double*);
template void multiply(Numbers<float>, const float*, Index, Index, Index, Index,
                       float*, Index, Index, bool);
template void multiply(Numbers<double>, const double*, Index, Index, Index,
                       Index, double*, Index, Index, bool);

}  // namespace lipscope::panels
