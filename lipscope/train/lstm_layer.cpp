#include "lipscope/train/lstm_layer.h"

#include <algorithm>
#include <utility>

#include "lipscope/core/gemm.h"

namespace lipscope {
namespace {

// sequences that go through time together: fixed pieces of the batch
constexpr Index together = 16;

// The rows of time t of `count` sequences from `first` on, and some of their
// columns: every length-th row of m.
template <class Real>
View<Real> at_time(MatrixOf<Real>& m, Index t, Rectangle sequences,
                   Index length) {
  return {m.data() + (sequences.row * length + t) * m.cols() + sequences.col,
          sequences.rows, sequences.cols,
          Eigen::OuterStride<>(length * m.cols())};
}

template <class Real, class Task>
void for_sequence_pieces(const Pass& pass, const Task& task) {
  parallel_for(
      (pass.sequences + together - 1) / together, pass.threads, [&](Index i) {
        task(i * together, std::min(together, pass.sequences - i * together));
      });
}

}  // namespace

template <class Real>
LstmLayer<Real>::LstmLayer(Layout& layout, const std::string& name, Index width)
    : in_(layout, name + ".in", width, 4 * width, true),
      recurrent_(
          layout.add_matrix(name + ".recurrent.weight", width, 4 * width)) {}

template <class Real>
const MatrixOf<Real>& LstmLayer<Real>::forward(const VectorOf<Real>& weights,
                                               const MatrixOf<Real>& x,
                                               const Pass& pass) {
  const Index n = x.rows(), d = x.cols(), length = pass.length;
  x_ = &x;
  gates_.resize(n, 4 * d);
  c_.resize(n, d);
  h_.resize(n, d);
  in_.forward(weights, view(x), view(gates_), pass);
  const RightFactor<Real> recurrent(as_is(tensor(weights, recurrent_)),
                                    pass.products);
  for_sequence_pieces<Real>(pass, [&](Index first, Index count) {
    const Rectangle all{first, 0, count, d};
    const auto gate = [&](Index which, Index t) {
      return at_time(gates_, t, {first, which * d, count, d}, length);
    };
    const auto sigmoid = [](View<Real> z) {
      z.array() = 1 / (1 + (-z.array()).exp());
    };
    for (Index t = 0; t < length; ++t) {
      if (t > 0)
        gemm<Real>(as_is(read_only(at_time(h_, t - 1, all, length))), recurrent,
                   at_time(gates_, t, {first, 0, count, 4 * d}, length),
                   Into::add);
      View<Real> i = gate(0, t), f = gate(1, t), g = gate(2, t), o = gate(3, t);
      f.array() += 1;
      sigmoid(i);
      sigmoid(f);
      g.array() = g.array().tanh();
      sigmoid(o);
      View<Real> c = at_time(c_, t, all, length);
      c = i.cwiseProduct(g);
      if (t > 0) c += f.cwiseProduct(at_time(c_, t - 1, all, length));
      at_time(h_, t, all, length).array() = o.array() * c.array().tanh();
    }
  });
  return h_;
}

template <class Real>
const MatrixOf<Real>& LstmLayer<Real>::backward(const VectorOf<Real>& weights,
                                                VectorOf<Real>& gradients,
                                                const MatrixOf<Real>& gh,
                                                const Pass& pass) {
  const Index n = gh.rows(), d = gh.cols(), length = pass.length;
  ggates_.resize(n, 4 * d);
  before_.resize(n, d);  // h_{t−1}, for gW_h
  const RightFactor<Real> recurrent(transposed(tensor(weights, recurrent_)),
                                    pass.products);
  for_sequence_pieces<Real>(pass, [&](Index first, Index count) {
    const Rectangle all{first, 0, count, d};
    const auto part = [&](MatrixOf<Real>& m, Index which, Index t) {
      return at_time(m, t, {first, which * d, count, d}, length);
    };
    // gradients by h_t and c_t, from all that comes after
    MatrixOf<Real> later_h = MatrixOf<Real>::Zero(count, d), gc = later_h;
    for (Index t = length - 1; t >= 0; --t) {
      const auto i = part(gates_, 0, t).array(), f = part(gates_, 1, t).array(),
                 g = part(gates_, 2, t).array(), o = part(gates_, 3, t).array();
      for (Index s = 0; s < count; ++s)
        later_h.row(s) += gh.row((first + s) * length + t);
      // h = o tanh(c):  go = gh tanh(c),  gc += gh o (1 − tanh²(c))
      const MatrixOf<Real> tanh_c =
          at_time(c_, t, all, length).array().tanh().matrix();
      part(ggates_, 3, t).array() =
          later_h.array() * tanh_c.array() * o * (1 - o);
      gc.array() += later_h.array() * o * (1 - tanh_c.array().square());
      // c_t = f c_{t−1} + i g
      part(ggates_, 0, t).array() = gc.array() * g * i * (1 - i);
      part(ggates_, 2, t).array() = gc.array() * i * (1 - g.square());
      if (t > 0)
        part(ggates_, 1, t).array() =
            gc.array() * at_time(c_, t - 1, all, length).array() * f * (1 - f);
      else
        part(ggates_, 1, t).setZero();
      gc.array() *= f;
      // gates = x W_x + h_{t−1} W_h + b:  gh_{t−1} = ggates W_hᵀ
      gemm<Real>(as_is(read_only(
                     at_time(ggates_, t, {first, 0, count, 4 * d}, length))),
                 recurrent, view(later_h));
      if (t > 0)
        at_time(before_, t, all, length) = at_time(h_, t - 1, all, length);
      else
        at_time(before_, t, all, length).setZero();
    }
  });
  // gW_h = Σ_t h_{t−1}ᵀ ggates_t
  product_into<Real>(transposed(view(std::as_const(before_))),
                     as_is(view(std::as_const(ggates_))),
                     tensor(gradients, recurrent_), pass.threads,
                     pass.products);
  gx_.resize(n, d);
  in_.backward(weights, gradients, view(*x_), view(std::as_const(ggates_)),
               view(gx_), pass);
  return gx_;
}

template class LstmLayer<float>;
template class LstmLayer<double>;

}  // namespace lipscope
