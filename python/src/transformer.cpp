// Transformers on arrays of Python.

#include <fmt/format.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <utility>
#include <vector>

#include "bindings.h"
#include "lipscope/io/json_text.h"
#include "weights.h"

namespace lipscope::python {
namespace {

using AnyArray = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

NumberFormat format_of(const AnyArray& array, const std::string& place) {
  using Code = nb::dlpack::dtype_code;
  const nb::dlpack::dtype dtype = array.dtype();
  const auto code = static_cast<Code>(dtype.code);
  if (code == Code::Bfloat && dtype.bits == 16) return NumberFormat::bf16;
  if (code == Code::Float && dtype.bits == 16) return NumberFormat::f16;
  if (dtype == nb::dtype<float>()) return NumberFormat::f32;
  if (dtype == nb::dtype<double>()) return NumberFormat::f64;
  throw nb::value_error(
      fmt::format("{}: expected f16, bf16, f32 or f64", place).c_str());
}

Transformer transformer_of(const std::string& config, const nb::dict& arrays,
                           const std::string& sha256) {
  auto tensors = std::make_shared<TensorsInMemory>();
  auto kept = std::make_shared<std::vector<AnyArray>>();
  tensors->sha256 = sha256;
  for (const auto& [key, value] : arrays) {
    const std::string name = nb::cast<std::string>(key);
    const std::string place =
        fmt::format("in memory: tensor {}", printable(name));
    AnyArray array;
    if (!nb::try_cast(value, array, false))
      throw nb::type_error(
          fmt::format("{}: expected an array on the CPU, row by row", place)
              .c_str());
    TensorView view{
        .format = format_of(array, place),
        .shape = {},
        .bytes = {static_cast<const std::byte*>(array.data()), array.nbytes()},
        .place = place};
    for (std::size_t axis = 0; axis < array.ndim(); ++axis)
      view.shape.push_back(static_cast<Index>(array.shape(axis)));
    tensors->tensors.emplace(name, std::move(view));
    kept->push_back(std::move(array));
  }
  tensors->owner = kept;
  return {std::make_shared<ModelInMemory>(
      ModelInMemory{parse_model_config(config, "config"), std::move(tensors)})};
}

}  // namespace

void bind_transformer(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<Transformer>(m, "Transformer",
                          "A transformer on arrays, which are not copied.");
  m.def("transformer", &transformer_of, "config"_a, "arrays"_a, "sha256"_a,
        "config: the text of a config.json; arrays: by the names that Hugging "
        "Face has for the tensors; sha256: of all of them.");
}

}  // namespace lipscope::python
