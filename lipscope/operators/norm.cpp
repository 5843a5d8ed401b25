#include "lipscope/operators/norm.h"

#include "lipscope/core/errors.h"

namespace lipscope {

std::string name_of(Norm norm) {
  switch (norm) {
    case Norm::two:
      return "2";
    case Norm::inf:
      return "inf";
    case Norm::token:
      return "token";
    case Norm::w2:
      return "w2";
    case Norm::d2:
      return "d2";
  }
  throw std::logic_error("a norm without a name");
}

Norm parse_norm(const std::string& word, const std::string& where) {
  for (const Norm norm : {Norm::two, Norm::inf, Norm::token})
    if (word == name_of(norm)) return norm;
  throw InputError(fmt::format("{} {}: expected 2, inf or token", where, word));
}

}  // namespace lipscope
