#include "lipscope/cli/machine.h"

#include <algorithm>
#include <fstream>

namespace lipscope::cli {

std::string cpu_field(const std::string& name) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon != std::string::npos && line.rfind(name, 0) == 0)
      return line.substr(std::min(colon + 2, line.size()));
  }
  return "unknown";
}

}  // namespace lipscope::cli
