#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "lipscope/io/file_descriptor.h"

namespace lipscope {

/// The most that a text, a configuration, or a file of records may have.
inline constexpr std::uint64_t largest_text = std::uint64_t{1} << 30;
inline constexpr std::uint64_t largest_config = 100'000'000;
inline constexpr std::uint64_t largest_journal = std::uint64_t{1} << 32;

/// All that a file holds. InputError if it cannot be read, if it is a folder, a
/// device, a pipe or a socket, and, with both numbers, if it has more than
/// `most` bytes.
std::string read_text_file(const std::filesystem::path& path,
                           std::uint64_t most = largest_text);

/// The same of a file that is open, from its beginning.
std::string read_text_file(const FileDescriptor& file,
                           const std::filesystem::path& path,
                           std::uint64_t most);

}  // namespace lipscope
