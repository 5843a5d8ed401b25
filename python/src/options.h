#pragma once

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <string>

#include "arrays.h"

namespace lipscope::python {

namespace nb = nanobind;

/// The keyword arguments of a command, by name. What is not there keeps its
/// default.
class Options {
 public:
  explicit Options(nb::dict given) : given_(std::move(given)) {}

  template <class Value>
  void read(const char* name, Value& into) const {
    if (!given_.contains(name)) return;
    const nb::object value = given_[name];
    if (nb::try_cast(value, into)) return;
    throw nb::type_error(fmt::format("{}: {} is of the wrong type", name,
                                     nb::cast<std::string>(nb::repr(value)))
                             .c_str());
  }

  /// An array with one axis, which is copied.
  void read(const char* name, Vector& into) const {
    if (given_.contains(name)) into = Array(given_[name], name).to_vector();
  }

  /// A word that `parse` understands, called with the word and the name.
  template <class Value, class Parse>
  void read(const char* name, Value& into, const Parse& parse) const {
    const std::string word = text(name);
    if (!word.empty()) into = parse(word, name);
  }

  std::string text(const char* name) const {
    std::string value;
    read(name, value);
    return value;
  }

 private:
  nb::dict given_;
};

}  // namespace lipscope::python
