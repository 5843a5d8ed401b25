#include "lipscope/core/version.h"

namespace lipscope {

const char* version() { return LIPSCOPE_VERSION; }

const char* build_flags() { return LIPSCOPE_BUILD; }

}  // namespace lipscope
