#pragma once

#include <string>

namespace lipscope::cli {

/// A field of /proc/cpuinfo, of the first core; "unknown" where there is none.
std::string cpu_field(const std::string& name);

}  // namespace lipscope::cli
