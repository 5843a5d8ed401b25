#pragma once

namespace lipscope {

/// The version of this library, as in CHANGELOG.md: "0.1.0".
const char* version();

/// How it was built: the configuration, and whether for this machine alone.
const char* build_flags();

}  // namespace lipscope
