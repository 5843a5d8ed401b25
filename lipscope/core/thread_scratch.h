#pragma once

#include <cstddef>

namespace lipscope {

/// What a product keeps in scratch memory of its thread. Two that are in use at
/// the same time have names of their own.
enum class Scratch { right_factor, left_panels, left_tiles, left_pairs };

/// At least so many bytes for the calling thread alone, aligned to 64. They are
/// kept for its next call with the same name, which may move them, and freed
/// when the thread ends. What stands in them is not cleared.
///
/// On the heap: an array that is thread_local itself takes its place from a
/// small fixed store where a library is loaded at run time.
void* thread_scratch(Scratch use, std::size_t bytes);

}  // namespace lipscope
