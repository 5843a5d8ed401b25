#pragma once

#include <nanobind/nanobind.h>

/// What the module consists of: one file for each.
namespace lipscope::python {

namespace nb = nanobind;

void bind_errors(nb::module_& m);
void bind_operators(nb::module_& m);
void bind_attention(nb::module_& m);
void bind_theory(nb::module_& m);
void bind_transformer(nb::module_& m);
void bind_commands(nb::module_& m);
void bind_executor(nb::module_& m);

/// Raises what a signal handler of Python raises, KeyboardInterrupt above all,
/// if a signal has come. Takes the GIL. Handlers run on the main thread alone;
/// elsewhere this does nothing.
void raise_signals();

}  // namespace lipscope::python
