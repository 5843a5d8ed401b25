// What bounds from above are made of: numbers that round up, norms that are
// proved, and the parts of the theorems that depend on the length alone.

#include <nanobind/operators.h>
#include <nanobind/stl/string.h>

#include <boost/math/distributions/students_t.hpp>
#include <vector>

#include "arrays.h"
#include "bindings.h"
#include "lipscope/attention/l2.h"
#include "lipscope/audit/source.h"
#include "lipscope/core/errors.h"
#include "lipscope/theory/column_sums.h"
#include "lipscope/theory/l2_kernel.h"
#include "lipscope/theory/magnitude.h"
#include "lipscope/theory/norms.h"
#include "lipscope/theory/ramapuram24.h"
#include "weights.h"

namespace lipscope::python {
namespace {

Mask mask_of(const std::string& word) {
  require(word == "none" || word == "causal",
          "mask: expected none or causal, got {}", word);
  return word == "causal" ? Mask::causal : Mask::none;
}

// a norm of the whole matrix, made without the GIL
template <class Norm>
double norm_of(nb::handle array, const char* name, const Norm& norm) {
  const Matrix w = Array(array, name).to_matrix();
  const nb::gil_scoped_release free;
  return norm(w);
}

double product_norm(nb::handle x, nb::handle y) {
  const Matrix left = Array(x, "x").to_matrix();
  const Matrix right = Array(y, "y").to_matrix();
  const nb::gil_scoped_release free;
  return product_norm_above(left, right.transpose());
}

Magnitude path_factor(const Layer& layer) {
  const nb::gil_scoped_release free;
  const AttentionWeights& w = layer.weights->weights;
  std::vector<HeadWeights> heads;
  for (Index h = 0; h < w.heads; ++h) heads.push_back(head(w, h));
  return l2_path_factor(l2_path_norms(heads));
}

}  // namespace

void bind_theory(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<Magnitude>(
      m, "Magnitude",
      "A number from 0 on that is known from above: every operation rounds up. "
      "Beyond the range of float the logarithm goes on.")
      .def(nb::init<double>(), "x"_a)
      .def_prop_ro("value", &Magnitude::value)
      .def_prop_ro("log10", &Magnitude::log10)
      .def(nb::self + nb::self)
      .def(nb::self * nb::self)
      .def(nb::self < nb::self)
      .def(
          "__add__", [](Magnitude a, double b) { return a + b; },
          nb::is_operator())
      .def(
          "__radd__", [](Magnitude a, double b) { return a + b; },
          nb::is_operator())
      .def(
          "__mul__", [](Magnitude a, double b) { return a * b; },
          nb::is_operator())
      .def(
          "__rmul__", [](Magnitude a, double b) { return a * b; },
          nb::is_operator())
      .def("root", [](Magnitude a) { return root(a); });

  m.def(
      "weight_norm_above",
      [](nb::handle w) { return norm_of(w, "w", weight_norm_above); }, "w"_a,
      "The largest singular value, proved by a Cholesky factorisation.");
  m.def("product_norm_above", &product_norm, "x"_a, "y"_a,
        "The largest singular value of x y, proved.");
  m.def(
      "row_sum_above",
      [](nb::handle w) { return norm_of(w, "w", row_sum_above); }, "w"_a,
      "The largest sum of absolute values of a row.");
  m.def(
      "length_above",
      [](nb::handle v) { return length_above(Array(v, "v").to_vector()); },
      "v"_a, "The 2-norm of a vector.");

  m.def("kim21_phi_inverse", &kim21_phi_inverse, "n"_a,
        "p with p e^(p+1) = n - 1, from above.");
  m.def(
      "l2_kernel",
      [](Index n, const std::string& mask) {
        require(n >= 1, "n: {}; expected at least 1", n);
        return l2_kernel(n, mask_of(mask));
      },
      "n"_a, "mask"_a, "The factor of theory/l2_kernel.h that n gives.");
  m.def("l2_path_factor", &path_factor, "layer"_a,
        "The factor of theory/l2_kernel.h that the weights give.");
  m.def(
      "largest_column_sum",
      [](double spread, Index n, const std::string& mask) {
        require(n >= 1 && spread >= 0.0, "n: {}, spread: {}", n, spread);
        return largest_column_sum(spread, n, mask_of(mask));
      },
      "spread"_a, "n"_a, "mask"_a,
      "Of attention weights whose logits lie within 2 spread of one another.");
  m.def(
      "ramapuram24_ball",
      [](double score, double value, double radius, Index n) {
        require(n >= 1, "n: {}; expected at least 1", n);
        return ramapuram24_ball({.score = score, .value = value}, radius, n);
      },
      "score"_a, "value"_a, "radius"_a, "n"_a,
      "Of a sigmoid head without biases, theory/ramapuram24.h.");
  m.def(
      "student_quantile",
      [](double share, double freedom) {
        require(share > 0.0 && share < 1.0 && freedom > 0.0,
                "share: {}, freedom: {}", share, freedom);
        return boost::math::quantile(boost::math::students_t(freedom), share);
      },
      "share"_a, "freedom"_a, "Of Student's distribution.");
}

}  // namespace lipscope::python
