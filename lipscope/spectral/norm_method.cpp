#include "lipscope/spectral/norm_method.h"

#include "lipscope/core/errors.h"

namespace lipscope {

std::string name_of(NormMethod method) {
  switch (method) {
    case NormMethod::dense_gram:
      return "dense-gram";
    case NormMethod::golub_kahan_f32:
      return "golub-kahan-f32";
    case NormMethod::golub_kahan_f64:
      return "golub-kahan-f64";
    case NormMethod::row_sweep:
      return "row-sweep";
    case NormMethod::alternating:
      return "alternating";
  }
  throw std::logic_error("a method without a name");
}

}  // namespace lipscope
