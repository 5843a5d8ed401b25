#pragma once

#include <nanobind/nanobind.h>

#include "arrays.h"
#include "lipscope/operators/linear_operator.h"

namespace lipscope::python {

/// Two functions of Python as an operator. They are called with the GIL held,
/// on the thread that called the library, with a NumPy array of their own;
/// what they raise goes through unchanged.
template <class Real>
class CallbackOperator final : public LinearOperator<Real> {
 public:
  CallbackOperator(nb::object matvec, nb::object rmatvec, Index rows,
                   Index cols)
      : matvec_(std::move(matvec)),
        rmatvec_(std::move(rmatvec)),
        rows_(rows),
        cols_(cols) {}

  Index rows() const override { return rows_; }
  Index cols() const override { return cols_; }

  VectorOf<Real> apply(const VectorOf<Real>& v) const override {
    const nb::gil_scoped_acquire gil;
    return from_callback<Real>(matvec_(to_numpy(v)), rows_, "matvec");
  }
  VectorOf<Real> apply_adjoint(const VectorOf<Real>& u) const override {
    const nb::gil_scoped_acquire gil;
    return from_callback<Real>(rmatvec_(to_numpy(u)), cols_, "rmatvec");
  }

 private:
  nb::object matvec_, rmatvec_;
  Index rows_, cols_;
};

/// An operator whose products are in f32, between vectors in f64.
class Widened final : public LinearOperator<double> {
 public:
  explicit Widened(const LinearOperator<float>& a) : a_(a) {}
  Index rows() const override { return a_.rows(); }
  Index cols() const override { return a_.cols(); }
  Vector apply(const Vector& v) const override {
    return a_.apply(v.cast<float>()).cast<double>();
  }
  Vector apply_adjoint(const Vector& u) const override {
    return a_.apply_adjoint(u.cast<float>()).cast<double>();
  }

 private:
  const LinearOperator<float>& a_;
};

}  // namespace lipscope::python
