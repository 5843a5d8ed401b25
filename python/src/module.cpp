// lipscope._core: the library for Python. What people call is in
// python/lipscope; here is one file for each concept.

#include "bindings.h"
#include "lipscope/core/version.h"

NB_MODULE(_core, m) {
  m.doc() = "The C++ core of lipscope. Use the package lipscope.";
  m.attr("__version__") = lipscope::version();
  lipscope::python::bind_errors(m);
  lipscope::python::bind_operators(m);
  lipscope::python::bind_attention(m);
  lipscope::python::bind_theory(m);
  lipscope::python::bind_transformer(m);
  lipscope::python::bind_commands(m);
  lipscope::python::bind_executor(m);
}
