#pragma once

#include <string>

#include "lipscope/spectral/norm_method.h"
#include "lipscope/theory/bound.h"

namespace lipscope {

/// How a number came about that is neither the norm of an operator nor a bound.
enum class Procedure {
  reconstruction,    ///< an input from its output, compared with the input
  a_posteriori,      ///< the error of an inversion, from its last step
  attack,            ///< a change of a prediction was looked for
  deviation,         ///< a change was followed through a model
  exact_transport,   ///< a distance W₂ by linear programming
  formula,           ///< in closed form
  row_sum,           ///< one row of a Jacobian
  finite_difference  ///< of a map at two inputs near each other
};

std::string name_of(Procedure procedure);  ///< "a-posteriori", …

/// How one side of a record is known: what `lower_by` and `upper_by` say.
class KnownBy {
 public:
  KnownBy() = default;  ///< nothing is known
  KnownBy(NormMethod method) : name_(name_of(method)) {}
  KnownBy(Procedure procedure) : name_(name_of(procedure)) {}
  KnownBy(const Bound& bound) : name_(bound.name) {}

  /// By the bound of this name, where there is only the name.
  static KnownBy bound(const std::string& name);
  /// By following a change through a model with this bound on its attention.
  static KnownBy deviation(const std::string& bound);
  /// The same at an input that was found in this way: "ascent, dense-gram".
  KnownBy at(const std::string& input) const;

  bool empty() const { return name_.empty(); }
  const std::string& name() const { return name_; }

 private:
  explicit KnownBy(std::string name) : name_(std::move(name)) {}

  std::string name_;
};

}  // namespace lipscope
