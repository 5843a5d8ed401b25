// The readers of configurations name a kind of attention in their messages. The
// kinds themselves need products, which the fuzz programs do without.

#include <stdexcept>

#include "lipscope/attention/kind.h"

namespace lipscope {

std::string name_of(Kind kind) {
  switch (kind) {
    case Kind::dot:
      return "dot";
    case Kind::l2:
      return "l2";
    case Kind::l2_untied:
      return "l2-untied";
    case Kind::cosine:
      return "cosine";
    case Kind::sigmoid:
      return "sigmoid";
  }
  throw std::logic_error("a kind without a name");
}

}  // namespace lipscope
