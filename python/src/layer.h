#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "lipscope/audit/subject.h"

namespace lipscope::python {

/// The weights of one attention layer, copied in f64 from the arrays of Python.
struct Layer {
  std::shared_ptr<const audit::LoneLayer> weights;
};

}  // namespace lipscope::python
