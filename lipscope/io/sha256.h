#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace lipscope {

/// The SHA-256 of the file's bytes, as 64 lower-case hexadecimal digits.
/// `read` is told now and then how many more bytes were read; it may be empty.
/// The file is read a piece at a time, however large it is. InputError if it
/// cannot be read.
std::string sha256_file(const std::filesystem::path& path,
                        const std::function<void(std::uint64_t)>& read = {});

/// The SHA-256 of these bytes.
std::string sha256_text(std::string_view text);

}  // namespace lipscope
