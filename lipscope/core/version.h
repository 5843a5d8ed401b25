#pragma once

namespace lipscope {

/// The version of this library, as in CHANGELOG.md: "0.2.0".
const char* version();

/// The commit it was built from, twelve digits; "-modified" follows where the
/// sources were changed since; "unknown" outside a git repository.
const char* commit();

/// How it was built: the configuration, and whether for this machine alone.
const char* build_flags();

}  // namespace lipscope
