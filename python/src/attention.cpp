// Attention layers from arrays: the map, and its Jacobian.

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "arrays.h"
#include "bindings.h"
#include "lipscope/attention/multi_head.h"
#include "lipscope/audit/source.h"
#include "lipscope/core/errors.h"
#include "weights.h"

namespace lipscope::python {
namespace {

Matrix matrix_of(const nb::dict& arrays, const char* name) {
  if (!arrays.contains(name)) return {};
  return Array(arrays[name], name).to_matrix();
}

Vector vector_of(const nb::dict& arrays, const char* name) {
  if (!arrays.contains(name)) return {};
  return Array(arrays[name], name).to_vector();
}

Layer layer_of(const nb::dict& arrays, Index heads, Index key_heads,
               const std::string& kind) {
  auto layer = std::make_shared<audit::LoneLayer>();
  AttentionWeights& w = layer->weights;
  w.heads = heads;
  w.key_heads = key_heads == heads ? 0 : key_heads;
  w.query = matrix_of(arrays, "q");
  w.key = matrix_of(arrays, "k");
  w.value = matrix_of(arrays, "v");
  w.output = matrix_of(arrays, "o");
  w.query_bias = vector_of(arrays, "q_bias");
  w.key_bias = vector_of(arrays, "k_bias");
  w.value_bias = vector_of(arrays, "v_bias");
  w.output_bias = vector_of(arrays, "o_bias");
  require_sound(w, audit::parse_kind(kind));
  return {std::move(layer)};
}

// none or causal; a window, or 0; padding at both ends
using MaskWords = std::tuple<std::string, Index, Index, Index>;

Mask mask_of(const MaskWords& words) {
  const auto& [name, window, before, after] = words;
  Mask mask{.hides_later = name == name_of(Mask::causal),
            .padding_before = before,
            .padding_after = after};
  if (window > 0) mask.window = window;
  return mask;
}

AttentionOptions options_of(const std::string& kind, const MaskWords& mask,
                            double tau, double nu, double epsilon,
                            int threads) {
  return {.kind = audit::parse_kind(kind),
          .mask = mask_of(mask),
          .cosine = {.tau = tau, .nu = nu, .epsilon = epsilon},
          .threads = threads};
}

// The layer as a map in f64, and its Jacobian at a point.
class Map64 {
 public:
  Map64(const Layer& layer, AttentionOptions options)
      : features_(layer.weights->weights.features()),
        map_(layer.weights->weights, std::move(options)) {}

  nb::object call(nb::handle x) const {
    const Matrix tokens = tokens_of(x);
    Matrix y;
    {
      const nb::gil_scoped_release free;
      y = map_(tokens);
    }
    return to_numpy(std::move(y));
  }

  std::unique_ptr<LinearOperator<double>> linearize(nb::handle x) const {
    const Matrix tokens = tokens_of(x);
    const nb::gil_scoped_release free;
    return map_.linearize(tokens);
  }

 private:
  Matrix tokens_of(nb::handle x) const {
    Matrix tokens = Array(x, "x").to_matrix();
    require(tokens.cols() == features_,
            "x: tokens have {} features, the layer reads {}", tokens.cols(),
            features_);
    return tokens;
  }

  Index features_;
  MultiHeadAttention<double> map_;
};

struct Jacobian {
  std::shared_ptr<const Map64> map;  // whose weights it borrows
  std::shared_ptr<const LinearOperator<double>> j;
};

nb::object product(nb::handle vector, Index expected, const char* name,
                   const std::function<Vector(const Vector&)>& multiply) {
  const Vector given = from_callback<double>(vector, expected, name);
  Vector found;
  {
    const nb::gil_scoped_release free;
    found = multiply(given);
  }
  return to_numpy(std::move(found));
}

}  // namespace

void bind_attention(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<Layer>(m, "Layer", "The weights of one attention layer, in f64.")
      .def_prop_ro("features", [](const Layer& l) {
        return l.weights->weights.features();
      });
  m.def(
      "check_arrays",
      [](const nb::dict& arrays) {
        for (const auto& [name, array] : arrays)
          Array(array, nb::cast<std::string>(name));
      },
      "arrays"_a, "Raises unless all are arrays that can be read; no copy.");
  m.def("layer", &layer_of, "arrays"_a, "heads"_a, "key_heads"_a, "kind"_a,
        "Copies the arrays q, k, v, o and their biases.");

  nb::class_<Map64>(m, "Map", "An attention layer as a map, in f64.")
      .def("__call__", &Map64::call, "x"_a);
  m.def(
      "map",
      [](const Layer& layer, const std::string& kind, const MaskWords& mask,
         double tau, double nu, double epsilon, int threads) {
        return std::make_shared<Map64>(
            layer, options_of(kind, mask, tau, nu, epsilon, threads));
      },
      "layer"_a, "kind"_a, "mask"_a, "tau"_a, "nu"_a, "epsilon"_a,
      "threads"_a = 0);
  nb::class_<Jacobian>(m, "Jacobian", "The Jacobian of a layer at a point.")
      .def_prop_ro("rows", [](const Jacobian& j) { return j.j->rows(); })
      .def_prop_ro("cols", [](const Jacobian& j) { return j.j->cols(); })
      .def(
          "apply",
          [](const Jacobian& j, nb::handle v) {
            return product(v, j.j->cols(), "v",
                           [&](const Vector& x) { return j.j->apply(x); });
          },
          "v"_a)
      .def(
          "apply_adjoint",
          [](const Jacobian& j, nb::handle u) {
            return product(u, j.j->rows(), "u", [&](const Vector& x) {
              return j.j->apply_adjoint(x);
            });
          },
          "u"_a);
  m.def(
      "jacobian",
      [](std::shared_ptr<Map64> map, nb::handle x) {
        std::shared_ptr<const LinearOperator<double>> j = map->linearize(x);
        return Jacobian{std::move(map), std::move(j)};
      },
      "map"_a, "x"_a);
}

}  // namespace lipscope::python
