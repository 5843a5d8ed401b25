#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "lipscope/audit/subject.h"
#include "lipscope/model/model.h"

namespace lipscope::python {

/// The weights of one attention layer, copied in f64 from the arrays of Python.
struct Layer {
  std::shared_ptr<const audit::LoneLayer> weights;
};

/// A transformer on the arrays of Python, which it keeps alive and does not
/// copy.
struct Transformer {
  std::shared_ptr<const ModelInMemory> model;
};

}  // namespace lipscope::python
