#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace lipscope {

/// The SHA-256 of the file's bytes, as 64 lower-case hexadecimal digits.
/// InputError if it cannot be read.
std::string sha256_file(const std::filesystem::path& path);

/// The SHA-256 of these bytes.
std::string sha256_text(std::string_view text);

}  // namespace lipscope
