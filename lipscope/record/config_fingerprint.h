#pragma once

#include <string>

#include "lipscope/model/config.h"

namespace lipscope {

/// SHA-256 of all that config.json says and numbers depend on.
std::string fingerprint(const ModelConfig& config);

}  // namespace lipscope
