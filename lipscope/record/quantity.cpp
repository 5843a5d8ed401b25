#include "lipscope/record/quantity.h"

#include "lipscope/core/errors.h"

namespace lipscope {

std::string name_of(Quantity quantity) {
  switch (quantity) {
    case Quantity::constant:
      return "constant";
    case Quantity::distance:
      return "distance to a change of prediction";
    case Quantity::reconstruction_error:
      return "reconstruction error";
    case Quantity::share:
      return "share of predictions";
    case Quantity::loss:
      return "loss";
    case Quantity::gradient_norm:
      return "gradient norm";
  }
  throw std::logic_error("a quantity without a name");
}

std::string name_of(Evidence evidence) {
  return evidence == Evidence::found ? "found" : "proved";
}

}  // namespace lipscope
