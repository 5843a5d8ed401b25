// The exceptions of the library as those of Python.

#include "lipscope/core/errors.h"

#include "bindings.h"
#include "lipscope/record/merge.h"
#include "lipscope/record/records.h"

namespace lipscope::python {

void bind_errors(nb::module_& m) {
  // std::invalid_argument, a caller's mistake, is a ValueError by itself
  nb::exception<InputError>(m, "InputError", PyExc_ValueError);
  nb::exception<RunError>(m, "RunError", PyExc_RuntimeError);
  nb::exception<MergeConflict>(m, "MergeConflict", PyExc_RuntimeError);
  nb::exception<Violation>(m, "Violation", PyExc_RuntimeError);
}

void raise_signals() {
  const nb::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace lipscope::python
